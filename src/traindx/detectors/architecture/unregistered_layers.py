"""Layers that nn.Module does not see: in plain lists and dicts, or made anew in forward."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from traindx.evidence import Finding, Location, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import Project, project_of
from traindx.source.module import Module, argument, key_of, literal
from traindx.source.patches import diff, replacing
from traindx.source.shapes.structure import (
    CONTAINERS,
    Attribute,
    attributes,
    has_weights,
    is_self_contained,
    is_test_file,
    layer_name,
    own_method,
    prefix_of,
)
from traindx.source.shapes.uses import model_classes

# the position of the switch that gives a normalisation its weights, and whether it is on by default
AFFINE = {
    "LayerNorm": ("elementwise_affine", 2, True), "RMSNorm": ("elementwise_affine", 2, True),
    "GroupNorm": ("affine", 3, True), "BatchNorm1d": ("affine", 3, True),
    "BatchNorm2d": ("affine", 3, True), "BatchNorm3d": ("affine", 3, True),
    "SyncBatchNorm": ("affine", 3, True), "InstanceNorm1d": ("affine", 3, False),
    "InstanceNorm2d": ("affine", 3, False), "InstanceNorm3d": ("affine", 3, False),
}  # fmt: skip


@detector(needs=("source",), suggests=("unregistered-submodules",))
def check(run: Run) -> Iterator[Finding]:
    """Layers are kept where nn.Module does not see them.

    ## What it detects
    An attribute of a module that is a plain list, tuple or dict of layers or parameters and is used
    outside of `__init__`; and layers with weights that `forward` makes anew at each call.

    ## Why it matters
    Such layers are missing from `parameters()`, so the optimizer never changes them; they stay on
    the CPU when the model moves, and are not saved. No error says so.

    ## What to do
    Hold them in `nn.ModuleList` or `nn.ModuleDict`, made in `__init__`.

    ## When it is wrong
    Layers that are registered elsewhere too (`nn.Sequential(*self.layers)`, `add_module`), or kept
    out of sight on purpose, such as a teacher alone in a list, or frozen, or called without
    gradients, are fine. Layers without weights, as `nn.InstanceNorm2d` by default, are left alone.
    """
    project = project_of(run)
    for module, cls in model_classes(project):
        if is_test_file(module):
            continue
        for attribute in _plain_holders(project, module, cls):
            yield _held(project, module, attribute)
        yield from _made_in_forward(project, module, cls)


def _plain_holders(project: Project, module: Module, cls: ast.ClassDef) -> Iterator[Attribute]:
    init = own_method(cls, "__init__")
    assigned = [] if init is None else list(attributes(init))
    for attribute in assigned:
        same = [a for a in assigned if a.name == attribute.name]
        is_plain = isinstance(
            attribute.value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
        )
        if not is_plain or len(same) > 1:
            continue
        members = [*_members(attribute.value), *_added(cls, attribute.name)]
        kept = [m for m in members if _is_trainable(project, module, m)]
        is_alone = len(members) == 1 and _is_boxed_model(module, attribute.value)
        if kept and len(kept) * 2 > len(members) and _is_used(cls, attribute) and not (
            _is_registered(module, cls, attribute.name)
            or _is_hidden(module, cls, attribute.name, is_alone=is_alone)
        ):  # fmt: skip
            yield attribute


def _is_trainable(project: Project, module: Module, node: ast.AST) -> bool:
    """Tell whether a call makes weights that training should change."""
    return has_weights(project, module, node) and _holds_weights(project, module, node, set())


def _holds_weights(
    project: Project, module: Module, node: ast.AST, seen: set[ast.ClassDef]
) -> bool:
    """Tell whether anything in a call, or in the class that it makes one of, has weights."""
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        name = layer_name(module, call)
        if name is not None:
            is_on = has_weights(project, module, call) and _is_switched_on(call, name)
            if name not in CONTAINERS and is_on:
                return True
            continue
        found = project.find_class(module, module.qualified(call.func) or "")
        if found is None and _is_made_out_of_sight(module, call):
            return True
        if found is None or found[1] in seen or not project.is_module(*found):
            continue
        seen.add(found[1])
        is_foreign = not is_self_contained(project, *found)
        if is_foreign or _holds_weights(project, *found, seen):
            return True
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    parents = [project.find_class(module, module.qualified(b) or "") for b in bases]
    return any(
        p is not None and p[1] not in seen and _holds_weights(project, *p, seen | {p[1]})
        for p in parents
    )


def _is_made_out_of_sight(module: Module, call: ast.Call) -> bool:
    """Tell whether an attribute may be a model: `self.body = torchvision.models.resnet18()`."""
    above = module.parents.get(call)
    name = module.qualified(call.func) or ""
    is_plain = name.startswith(("torch.", "numpy.", "math.")) or hasattr(builtins, name)
    targets = above.targets if isinstance(above, ast.Assign) else []
    return not is_plain and any((key_of(t) or "").startswith("self.") for t in targets)


def _is_switched_on(call: ast.Call, name: str) -> bool:
    if name == "Parameter":
        return literal(argument(call, "requires_grad", 1)) is not False
    if name not in AFFINE:
        return True
    switch, position, default = AFFINE[name]
    given = argument(call, switch, position)
    return default if given is None else literal(given) is not False


def _is_hidden(module: Module, cls: ast.ClassDef, name: str, *, is_alone: bool) -> bool:
    """Tell whether layers are kept out of `parameters()` on purpose: a teacher, or frozen ones."""
    key = f"self.{name}"
    init = own_method(cls, "__init__")
    made = set() if init is None else set(ast.walk(init))
    uses = [
        n
        for n in ast.walk(cls)
        if isinstance(n, ast.Attribute) and key_of(n) == key and n not in made
    ]
    above = [module.parents.get(n) for n in uses]
    is_box = all(isinstance(a, ast.Subscript) and literal(a.slice) == 0 for a in above)
    if (is_alone and is_box) or all(_is_without_gradients(module, n) for n in uses):
        return True
    loops = [n for n in ast.walk(cls) if isinstance(n, ast.For) and key in ast.unparse(n.iter)]
    return any("requires_grad" in (text := ast.unparse(n)) or ".eval(" in text for n in loops)


def _is_boxed_model(module: Module, value: ast.expr) -> bool:
    """Tell whether a list holds one model of the user's own: a known way to hide it from torch."""
    members = _members(value) if isinstance(value, (ast.List, ast.Tuple)) else []
    return bool(members) and layer_name(module, members[0]) is None


def _is_without_gradients(module: Module, node: ast.AST) -> bool:
    for above in module.enclosing(node):
        if isinstance(above, ast.Attribute) and above.attr == "detach":
            return True
        heads: list[ast.expr] = []
        if isinstance(above, ast.With):
            heads = [item.context_expr for item in above.items]
        elif isinstance(above, ast.FunctionDef):
            heads = above.decorator_list
        if any("no_grad" in (text := ast.unparse(h)) or "inference_mode" in text for h in heads):
            return True
    return False


def _members(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, (ast.List, ast.Tuple)):
        return value.elts
    if isinstance(value, ast.Dict):
        return value.values
    if isinstance(value, ast.ListComp):
        return [value.elt]
    return [value.value] if isinstance(value, ast.DictComp) else []


def _added(cls: ast.ClassDef, name: str) -> list[ast.expr]:
    """What `self.name.append(…)` and `self.name[key] = …` add."""
    found: list[ast.expr] = []
    for node in ast.walk(cls):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            is_own = key_of(node.func.value) == f"self.{name}"
            if is_own and node.func.attr == "append":
                found.append(node.args[0])
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Subscript) and key_of(target.value) == f"self.{name}":
            found.append(node.value)  # type: ignore[attr-defined]
    return found


def _is_used(cls: ast.ClassDef, attribute: Attribute) -> bool:
    """Tell whether any method but `__init__` reads it."""
    for function in cls.body:
        if isinstance(function, ast.FunctionDef) and function.name != "__init__":
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute) and key_of(node) == f"self.{attribute.name}":
                    return True
    return False


def _is_registered(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """Tell whether the layers are handed to a container, or registered one by one."""
    for node in ast.walk(cls):
        if not isinstance(node, ast.Call):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else key_of(node.func)
        if called in ("add_module", "register_module", "setattr", "register_parameter"):
            return True
        inside = {key_of(n) for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        if layer_name(module, node) in CONTAINERS and f"self.{name}" in inside:
            return True
        if called in ("parameters", "named_parameters", "state_dict"):
            return True
    return False


def _held(project: Project, module: Module, attribute: Attribute) -> Finding:
    is_dict = isinstance(attribute.value, (ast.Dict, ast.DictComp))
    kind = "dict" if is_dict else "list"
    line = attribute.node.lineno
    return Finding(
        claim=f"Attribute self.{attribute.name} keeps layers in a plain {kind}: they do not train",
        strength=Strength.STRONG,
        evidence=(cite_source(module.path, line, f"a plain {kind} of layers"),),
        shows="unregistered-submodules",
        is_symptom=True,
        location=Location(module.path, line, attribute.node.end_lineno or line),
        patch=_patch(module, attribute, is_dict=is_dict),
    )


def _patch(module: Module, attribute: Attribute, *, is_dict: bool) -> str | None:
    cls = module.class_of(attribute.node)
    calls = [n for n in ast.walk(cls or attribute.value) if layer_name(module, n)]
    first = next((n for n in calls if isinstance(n, ast.Call)), None)
    text = ast.get_source_segment(module.text, attribute.value)
    if first is None or text is None:
        return None
    is_parameter = any(layer_name(module, m) == "Parameter" for m in _members(attribute.value))
    family = "Parameter" if is_parameter else "Module"
    holder = f"{prefix_of(first)}{family}{'Dict' if is_dict else 'List'}"
    is_empty = isinstance(attribute.value, (ast.List, ast.Dict)) and not _members(attribute.value)
    return diff(module, replacing(attribute.value, f"{holder}({'' if is_empty else text})"))


def _made_in_forward(project: Project, module: Module, cls: ast.ClassDef) -> Iterator[Finding]:
    forward = own_method(cls, "forward")
    for node in ast.walk(forward) if forward is not None else ():
        if not isinstance(node, ast.Call) or layer_name(module, node) in (None, *CONTAINERS):
            continue
        parent = module.parents.get(node)
        is_kept = isinstance(parent, ast.Assign) and _is_kept(forward, parent)
        if _is_trainable(project, module, node) and not is_kept:
            name = ast.unparse(node)
            yield Finding(
                claim=f"The forward pass of {cls.name} makes a new {name} at each call",
                strength=Strength.STRONG,
                evidence=(cite_source(module.path, node.lineno, "new random weights each time"),),
                shows="unregistered-submodules",
                is_symptom=True,
                location=Location(module.path, node.lineno, node.end_lineno or node.lineno),
            )


def _is_kept(forward: ast.AST | None, made: ast.Assign) -> bool:
    """Tell whether a layer becomes an attribute, or is given weights from elsewhere."""
    names = {t.id for t in made.targets if isinstance(t, ast.Name)}
    if len(names) < len(made.targets):
        return True
    given = {f"{name}.{what}" for name in names for what in ("weight", "load_state_dict")}
    if any(key_of(n) in given for n in ast.walk(forward or made)):
        return True
    for attribute in attributes(forward) if forward is not None else ():
        if isinstance(attribute.value, ast.Name) and attribute.value.id in names:
            return True
    return False


_NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = {layers}
        {more}

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return {out}
"""


_TEACHER = """
import torch
from torch import nn

class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)

class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return self.fc(x)

class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.teachers = [{teachers}]

    def forward(self, x):
        {guide}
        return ((Swish()(self.fc(x)) - goal) ** 2).mean()
"""


def _taught(teachers: str, guide: str) -> Run:
    text = _TEACHER.format(teachers=teachers, guide=guide)
    return make_run(sources={"model.py": text})


_TWO = "nn.Linear(8, 8), nn.Linear(8, 8)"
_BARE_NORM = "nn.LayerNorm(8, elementwise_affine=False)(nn.InstanceNorm1d(8)(x))"


def _net(layers: str, more: str = "pass", out: str = "x") -> Run:
    return make_run(sources={"model.py": _NET.format(layers=layers, more=more, out=out)})


FIRES = {
    "a list": _net("[nn.Linear(8, 8), nn.Linear(8, 8)]"),
    "a list that a comprehension makes": _net("[nn.Linear(8, 8) for _ in range(3)]"),
    "a list that is filled": _net("[]", "self.layers.append(nn.Linear(8, 8))"),
    "a layer alone in a list": _taught("nn.Linear(8, 8)", "goal = self.teachers[0](x)"),
    "a list that gradients go through": _taught(_TWO, "goal = sum(t(x) for t in self.teachers)"),
    "a layer made in forward": _net("nn.ModuleList()", out="nn.Linear(8, 2)(x)"),
}

SILENT = {
    "a ModuleList": _net("nn.ModuleList([nn.Linear(8, 8)])"),
    "near miss: registered beside": _net(
        "[nn.Linear(8, 8)]", "self.net = nn.Sequential(*self.layers)"
    ),
    "near miss: activations have no weights": _net("[nn.ReLU(), nn.Tanh()]", out="nn.ReLU()(x)"),
    "near miss: a teacher alone in a list": _taught("Teacher()", "goal = self.teachers[0](x)"),
    "near miss: its output is cut off": _taught(
        "nn.Linear(8, 8)", "goal = self.teachers[0](x).detach()"
    ),
    "near miss: teachers without gradients": _taught(
        _TWO, "with torch.no_grad():\n            goal = sum(t(x) for t in self.teachers)"
    ),
    "near miss: normalisations without weights": _net("nn.ModuleList()", out=_BARE_NORM),
    "a list of numbers": _net("[1, 2, 3]"),
}
