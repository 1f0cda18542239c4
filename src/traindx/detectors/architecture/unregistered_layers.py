"""Layers that nn.Module does not see: in plain lists and dicts, or made anew in forward."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Location, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import Project, project_of
from traindx.source.module import Module, key_of
from traindx.source.patches import diff, replacing
from traindx.source.shapes.structure import (
    CONTAINERS,
    Attribute,
    attributes,
    has_weights,
    is_test_file,
    layer_name,
    own_method,
    prefix_of,
)
from traindx.source.shapes.uses import model_classes


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
    out of sight on purpose, such as a frozen teacher in a list, are fine.
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
        kept = [m for m in members if has_weights(project, module, m)]
        if kept and len(kept) * 2 > len(members) and _is_used(cls, attribute) and not (
            _is_registered(module, cls, attribute.name)
        ):  # fmt: skip
            yield attribute


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
        if has_weights(project, module, node) and not is_kept:
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
    """Tell whether a layer becomes an attribute, at once or by its local name."""
    names = {t.id for t in made.targets if isinstance(t, ast.Name)}
    if len(names) < len(made.targets):
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


def _net(layers: str, more: str = "pass", out: str = "x") -> Run:
    return make_run(sources={"model.py": _NET.format(layers=layers, more=more, out=out)})


FIRES = {
    "a list": _net("[nn.Linear(8, 8), nn.Linear(8, 8)]"),
    "a list that a comprehension makes": _net("[nn.Linear(8, 8) for _ in range(3)]"),
    "a list that is filled": _net("[]", "self.layers.append(nn.Linear(8, 8))"),
    "a layer made in forward": _net("nn.ModuleList()", out="nn.Linear(8, 2)(x)"),
}

SILENT = {
    "a ModuleList": _net("nn.ModuleList([nn.Linear(8, 8)])"),
    "near miss: registered beside": _net(
        "[nn.Linear(8, 8)]", "self.net = nn.Sequential(*self.layers)"
    ),
    "near miss: activations have no weights": _net("[nn.ReLU(), nn.Tanh()]", out="nn.ReLU()(x)"),
    "a list of numbers": _net("[1, 2, 3]"),
}
