"""The result of a call takes the name of what was called."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.module import Module, key_of
from traindx.source.project import Project
from traindx.source.renames import apart
from traindx.source.values import Kind, value_of

BUILTINS = frozenset(
    {"len", "list", "dict", "range", "max", "min", "sum", "str", "int", "float", "type", "zip",
     "print", "sorted", "enumerate", "set", "tuple", "abs", "round", "isinstance", "map"}
)  # fmt: skip
VALUES = (ast.Constant, ast.List, ast.Dict, ast.Tuple, ast.BinOp, ast.ListComp, ast.JoinedStr)


@detector(needs=("source",), suggests=("name-shadowed",))
def check(run: Run) -> Iterator[Finding]:
    """A loss or model is replaced by its own result in a loop that calls it again.

    ## What it detects
    `loss = loss(output, target)` or `model = model(x)` in a loop, where the name was bound to a
    loss or model before the loop; and a built-in such as `len` that is bound to a plain value and
    called afterwards in the same scope.

    ## Why it matters
    The first iteration works. The second calls a tensor: `'Tensor' object is not callable`.

    ## What to do
    Give the function and its result two names: `loss_fn` and `loss`.

    ## When it is wrong
    A name that is bound anew at the top of every iteration is right, and left alone.
    """
    project = project_of(run)
    for module in project.training_modules:
        yield from _overwritten(project, module)
        yield from _builtins(project, module)


def _overwritten(project: Project, module: Module) -> Iterator[Finding]:
    for node in module.nodes(ast.Assign):
        call, name = node.value, key_of(node.targets[0])
        if not isinstance(call, ast.Call) or name is None or key_of(call.func) != name:
            continue
        if isinstance(call.func, ast.Subscript) or isinstance(node.targets[0], ast.Subscript):
            continue
        loop = next(
            (n for n in module.enclosing(node) if isinstance(n, (ast.For, ast.While))), None
        )
        made = _made(project, module, node, name)
        if loop is None or made is None or _is_bound_again(loop, node, name) or _leaves(loop):
            continue
        kind = "loss" if made[1] is Kind.LOSS else "model"
        yield Finding(
            claim=f"`{name}` is a {kind} and is replaced by its own result inside a loop",
            strength=Strength.STRONG,
            evidence=(
                module.cite(node, "the result takes the name here; the next call fails"),
                module.cite(made[0], f"{name} is made here"),
            ),
            shows="name-shadowed",
            is_symptom=True,
            location=module.location(node),
            patch=apart(module, node) if kind == "loss" else None,
        )


def _made(
    project: Project, module: Module, node: ast.Assign, name: str
) -> tuple[ast.expr, Kind] | None:
    """What the name was bound to outside, if that is a loss or a model that was made in sight."""
    at: ast.AST = module.function_of(node) or module.tree
    others = [v for v in project.lookup(module, at, name) if v is not node.value]
    kinds = [(v, value_of(project, module, at, v)) for v in others]
    if len(kinds) != 1 or not kinds[0][1].is_certain:
        return None
    value = kinds[0][1]
    return (kinds[0][0], value.kind) if value.kind in (Kind.LOSS, Kind.MODEL) else None


def _is_bound_again(loop: ast.AST, node: ast.Assign, name: str) -> bool:
    for other in ast.walk(loop):
        if isinstance(other, (ast.For, ast.comprehension)) and key_of(other.target) == name:
            return True
        is_other = isinstance(other, ast.Assign) and other is not node
        if is_other and name in {key_of(t) for t in getattr(other, "targets", [])}:
            return True
    return False


def _leaves(loop: ast.For | ast.While) -> bool:
    return isinstance(loop.body[-1], (ast.Break, ast.Return))


def _builtins(project: Project, module: Module) -> Iterator[Finding]:
    called: dict[tuple[ast.AST, str], ast.Call] = {}
    for call, name in module.calls():
        if name in BUILTINS and isinstance(call.func, ast.Name):
            called[module.function_of(call) or module.tree, name] = call  # the last one
    for (scope, name), call in called.items():
        for value in project.bindings(scope).get(name, []):
            if isinstance(value, VALUES) and value.lineno < call.lineno:
                yield Finding(
                    claim=f"The built-in `{name}` is bound to a value and called afterwards",
                    strength=Strength.STRONG,
                    evidence=(
                        module.cite(value, f"{name} becomes a value here"),
                        module.cite(call, "and is called here"),
                    ),
                    shows="name-shadowed",
                    is_symptom=True,
                    location=module.location(value),
                )
                break


_LOOP = """
import torch
from torch import nn

model = nn.Linear(4, 2)
{made} = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in loader:
    optimizer.zero_grad()
    {call}
    loss.backward()
    optimizer.step()
"""


def _loop(made: str, call: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(made=made, call=call)})


FIRES = {
    "loss = loss(…)": _loop("loss", "loss = loss(model(data), target)"),
    "model = model(…)": _loop("loss_fn", "model = model(data); loss = loss_fn(model, target)"),
    "a built-in": make_run(sources={"t.py": "len = 5\nfor x in data:\n    print(len(x))\n"}),
}

SILENT = {
    "two names": _loop("criterion", "loss = criterion(model(data), target)"),
    "near miss: made anew in every iteration": _loop(
        "unused", "loss = nn.CrossEntropyLoss(); loss = loss(model(data), target)"
    ),
    "near miss: once, outside any loop": make_run(
        sources={
            "t.py": "from torch import nn\nloss = nn.MSELoss()\n"
            "loss = loss(a, b)\nloss.backward()\n"
        }
    ),
}
