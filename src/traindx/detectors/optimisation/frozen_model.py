"""Every parameter of the model that is trained is frozen."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import training_loops
from traindx.source.module import Module, key_of
from traindx.source.values import Kind

HARMLESS = frozenset(
    {"to", "cuda", "cpu", "train", "eval", "parameters", "named_parameters", "state_dict",
     "load_state_dict", "zero_grad", "requires_grad_", "half", "float"}
)  # fmt: skip


@detector(needs=("source",), suggests=("frozen-parameters",))
def check(run: Run) -> Iterator[Finding]:
    """A model is frozen as a whole and trained afterwards.

    ## What it detects
    `for p in model.parameters(): p.requires_grad = False` (or `model.requires_grad_(False)`)
    without a condition, and nothing between it and the training of that very model that adds a
    layer, replaces the model, or switches a parameter on again. The same for a part of a model,
    `model.fc`, where that part is all that the optimizer was given.

    ## Why it matters
    No parameter gets a gradient: backward raises that nothing requires one.

    ## What to do
    Freeze only the backbone, or give the model its new head after freezing.

    ## When it is wrong
    A function that gets the model may add trainable parts to it; such programs are left alone.
    """
    for loop in training_loops(project_of(run)):
        for step in loop.does(Do.STEP):
            name, module = _model(step), step.module
            made = step.value.call
            runs = {a.target for a in loop.does(Do.FORWARD)}
            if not name or made is None or made not in module.parents:
                continue
            if "." not in name and runs != {name}:
                continue
            scope: ast.AST = module.function_of(made) or module.tree
            frozen = _freeze(scope, name)
            if frozen is None or _is_thawed(module, scope, name, frozen):
                continue
            yield Finding(
                claim=f"All parameters of `{name}` are frozen, and it is trained afterwards",
                strength=Strength.STRONG,
                evidence=(
                    module.cite(frozen, "every parameter is frozen here"),
                    module.cite(step.node, "and nothing is left to update here"),
                ),
                shows="frozen-parameters",
                is_symptom=True,
                location=module.location(frozen),
            )
            break


def _model(step: Act) -> str:
    """The model in `SGD(model.parameters(), …)`."""
    made = step.value.call
    given = made.args[0] if made is not None and made.args else None
    func = given.func if isinstance(given, ast.Call) else None
    if step.value.kind is not Kind.OPTIMIZER or not isinstance(func, ast.Attribute):
        return ""
    is_plain = func.attr == "parameters" and isinstance(func.value, (ast.Name, ast.Attribute))
    name = (key_of(func.value) or "") if is_plain else ""
    return "" if name.startswith("self.") else name


def _freeze(scope: ast.AST, name: str) -> ast.stmt | None:
    """The statement that freezes the whole model, where it runs without a condition."""
    for node in getattr(scope, "body", []):
        if isinstance(node, ast.For) and len(node.body) == 1:
            is_all = _is_method(node.iter, "parameters", name)
            if is_all and _switches(node.body[0], off=True):
                return node
        if isinstance(node, ast.Expr) and _is_method(node.value, "requires_grad_", name):
            given = getattr(node.value, "args", [])
            if given and _is_false(given[0]):
                return node
    return None


def _is_method(node: ast.expr, method: str, owner: str) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == method and key_of(func.value) == owner


def _switches(node: ast.stmt, *, off: bool) -> bool:
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
        return False
    return node.targets[0].attr == "requires_grad" and _is_false(node.value) is off


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_thawed(module: Module, scope: ast.AST, name: str, frozen: ast.stmt) -> bool:
    """Tell whether anything later may give the model something to train."""
    own = set(ast.walk(frozen))
    for node in ast.walk(scope):
        if node in own or getattr(node, "lineno", 0) <= frozen.lineno:
            continue
        if isinstance(node, ast.Assign):
            targets = [ast.unparse(t) for t in node.targets]
            if any(t == name or t.startswith((f"{name}.", f"{name}[")) for t in targets):
                return True
        if isinstance(node, ast.Attribute) and node.attr.startswith("requires_grad"):
            return True
        if isinstance(node, ast.Call) and _may_change(module, node, name):
            return True
    return False


def _may_change(module: Module, call: ast.Call, name: str) -> bool:
    if any(key_of(a) == name for a in (*call.args, *(k.value for k in call.keywords))):
        return True
    func = call.func
    if isinstance(func, ast.Attribute) and key_of(func.value) == name:
        return func.attr not in HARMLESS
    return False


_PROGRAM = """
import torch
from torch import nn
from torchvision import models

model = models.resnet18(weights="DEFAULT")
{freeze}
{after}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(data), target).backward()
    optimizer.step()
"""
_ALL = "for p in model.parameters():\n    p.requires_grad = False"


def _program(freeze: str = _ALL, after: str = "") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(freeze=freeze, after=after)})


_HEAD = """
model.fc = nn.Linear(512, 10)
for p in model.fc.parameters():
    p.requires_grad = {value}
"""


def _head(value: str) -> Run:
    text = _PROGRAM.format(freeze=_ALL, after=_HEAD.format(value=value))
    return make_run(sources={"train.py": text.replace("SGD(model.par", "SGD(model.fc.par")})


FIRES = {
    "all of it": _program(),
    "by the method": _program("model.requires_grad_(False)"),
    "the head that alone is trained": _head("False"),
}

SILENT = {
    "near miss: the head that alone is trained is switched on": _head("True"),
    "nothing frozen": _program(""),
    "near miss: a new head": _program(after="model.fc = nn.Linear(512, 2)"),
    "near miss: adapters are added": _program(after="add_adapters(model)"),
    "near miss: the head is switched on": _program(
        after="for p in model.fc.parameters():\n    p.requires_grad = True"
    ),
}
