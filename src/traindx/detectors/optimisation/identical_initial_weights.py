"""All weights of a model start at the same value."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Function, Module, key_of, literal
from traindx.source.project import Project

LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d")
CONSTANT = {"constant_": None, "zeros_": 0.0, "ones_": 1.0}


@detector(needs=("source",), suggests=("bad-initialisation",))
def check(run: Run) -> Iterator[Finding]:
    """Every linear or convolution weight of a model is set to one constant.

    ## What it detects
    A function given to `model.apply` that fills the weight of every linear or convolution layer
    with one value, and a loop over `model.parameters()` that does so with every parameter.

    ## Why it matters
    All units of a layer compute the same and get the same gradient for ever: the layer is one unit
    wide. With zeros nothing reaches the layers below at all.

    ## What to do
    Keep torch's default, or use `nn.init.kaiming_normal_` or `xavier_uniform_`; zero the bias only.

    ## When it is wrong
    A zero last layer, residual branch or adapter is good practice; single layers by name are not
    looked at, and neither are biases and normalisation layers.
    """
    project = project_of(run)
    for module in project.training_modules:
        applied = _applied(module)
        for name, function in module.functions.items() if applied else ():
            if name.rsplit(".", 1)[-1] in applied:
                for call in _fills(module, function):
                    yield _finding(module, call, "every linear or convolution weight")
        for node in module.nodes(ast.For):
            filled = _fills_everything(project, module, node)
            if filled is not None:
                yield _finding(module, filled, "every parameter")


def _finding(module: Module, node: ast.AST, what: str) -> Finding:
    return Finding(
        claim=f"`{ast.unparse(node)}` gives {what} of the model the same value",
        strength=Strength.STRONG,
        evidence=(module.cite(node, "one constant for all units"),),
        shows="bad-initialisation",
        is_symptom=True,
        location=module.location(node),
    )


def _applied(module: Module) -> set[str]:
    """The names of the functions that are given to `apply`."""
    calls = [c for c, n in module.calls() if n.endswith(".apply") and len(c.args) == 1]
    return {(key_of(c.args[0]) or "").rsplit(".", 1)[-1] for c in calls} - {""}


def _fills(module: Module, function: Function) -> Iterator[ast.Call]:
    """The calls that fill `m.weight` with a constant, under a test for a layer by its class."""
    for call, _ in module.calls(function):
        target = _constant_target(module, call)
        if not isinstance(target, ast.Attribute) or target.attr != "weight":
            continue
        if not isinstance(target.value, ast.Name):
            continue
        tests = [n.test for n in module.enclosing(call) if isinstance(n, ast.If)]
        body = [n for n in module.enclosing(call) if isinstance(n, ast.If)]
        if len(tests) == 1 and _is_layer_test(tests[0]) and _is_in_body(body[0], call):
            yield call


def _is_layer_test(test: ast.expr) -> bool:
    names = {
        n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(test)
    }
    is_test = isinstance(test, ast.Call) and key_of(test.func) == "isinstance"
    return is_test and bool(names & set(LAYERS)) and not any("Norm" in n for n in names)


def _is_in_body(block: ast.If, call: ast.Call) -> bool:
    return any(call in ast.walk(s) for s in block.body)


def _constant_target(module: Module, call: ast.Call) -> ast.expr | None:
    """What a call fills with one value: `init.constant_(w, c)`, `w.data.fill_(c)`, `w.zero_()`."""
    name = module.qualified(call.func) or ""
    last = name.rsplit(".", 1)[-1]
    if last in CONSTANT and ".init." in name and call.args:
        is_literal = last != "constant_" or (len(call.args) > 1 and _is_number(call.args[1]))
        return call.args[0] if is_literal else None
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("fill_", "zero_"):
        is_literal = func.attr == "zero_" or (bool(call.args) and _is_number(call.args[0]))
        owner = func.value
        if isinstance(owner, ast.Attribute) and owner.attr == "data":
            owner = owner.value
        return owner if is_literal else None
    return None


def _is_number(node: ast.expr) -> bool:
    return isinstance(literal(node), (int, float))


def _fills_everything(project: Project, module: Module, loop: ast.For) -> ast.Call | None:
    func = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    is_all = isinstance(func, ast.Attribute) and func.attr == "parameters"
    statement = loop.body[0]
    if not is_all or len(loop.body) != 1 or not isinstance(statement, ast.Expr):
        return None
    call = statement.value
    target = _constant_target(module, call) if isinstance(call, ast.Call) else None
    is_model = isinstance(func, ast.Attribute) and "model" in (key_of(func.value) or "").lower()
    is_parameter = isinstance(target, ast.Name) and key_of(loop.target) == target.id
    trains = "backward" in module.text
    return call if is_parameter and is_model and trains and isinstance(call, ast.Call) else None


_PROGRAM = """
import torch
from torch import nn

def init_weights(m):
    if isinstance(m, {layer}):
        {fill}

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
model.apply(init_weights)
"""


def _program(fill: str, layer: str = "nn.Linear") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(fill=fill, layer=layer)})


FIRES = {
    "zeros": _program("nn.init.zeros_(m.weight)"),
    "a constant": _program("nn.init.constant_(m.weight, 0.5)"),
    "fill": _program("m.weight.data.fill_(0)"),
}

SILENT = {
    "kaiming": _program("nn.init.kaiming_normal_(m.weight)"),
    "near miss: the bias only": _program("nn.init.zeros_(m.bias)"),
    "near miss: a normalisation layer": _program("nn.init.ones_(m.weight)", "nn.BatchNorm1d"),
}
