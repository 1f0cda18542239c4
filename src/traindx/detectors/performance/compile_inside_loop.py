"""A model is compiled anew in every iteration."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import key_of
from traindx.source.values import WRAPPERS


@detector(needs=("source",), suggests=("recompilation",))
def check(run: Run) -> Iterator[Finding]:
    """`torch.compile` is called inside a training loop.

    ## What it detects
    A call of `torch.compile` within the text of a loop that trains, without a condition, on a model
    that is the same one in each iteration.

    ## Why it matters
    Each call wraps the model anew, so its guards and caches start empty or pile up: time goes into
    the compiler instead of training.

    ## What to do
    Compile once, before the loop.

    ## When it is wrong
    A loop over models, folds or settings that makes and trains one each time compiles rightly; a
    loop that also makes its model or its optimizer is left alone.
    """
    for loop in training_loops(project_of(run)):
        module = loop.module
        if _makes_an_optimizer(loop):
            continue
        for call, name in module.calls(loop.node):
            above = list(module.enclosing(call))
            between = above[: above.index(loop.node)] if loop.node in above else above
            is_guarded = any(isinstance(n, (ast.If, ast.FunctionDef)) for n in between)
            if name == "torch.compile" and not is_guarded and _is_the_same_again(loop, call):
                yield Finding(
                    claim="The model is compiled inside the training loop",
                    strength=Strength.STRONG,
                    evidence=(
                        module.cite(call, "compiled here, in every iteration"),
                        module.cite(loop.node, "the loop"),
                    ),
                    shows="recompilation",
                    is_symptom=True,
                    location=module.location(call),
                )
                break


def _makes_an_optimizer(loop: TrainingLoop) -> bool:
    """Tell whether each iteration starts a training of its own, here or in what it calls."""
    called = {(a.module, a.function) for a in loop.acts if a.function is not loop.function}
    texts = [(loop.module, loop.node), *((m, f) for m, f in called if f is not None)]
    return any(n.startswith("torch.optim.") for m, text in texts for _, n in m.calls(text))


def _is_the_same_again(loop: TrainingLoop, compiled: ast.Call) -> bool:
    """Tell whether what is compiled was made before the loop."""
    model = _unwrapped(compiled.args[0]) if compiled.args else None
    key = None if model is None else key_of(model)
    if key is None or isinstance(model, ast.Subscript):
        return False
    for node in ast.walk(loop.node):
        if isinstance(node, (ast.For, ast.AsyncFor)) and _names(node.target, key):
            return False
        is_set = isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr))
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
        value = getattr(node, "value", None)
        if is_set and value is not None and any(_names(t, key) for t in targets):
            kept = _unwrapped(value)
            if key_of(kept) != key or isinstance(kept, ast.Subscript):
                return False
    return True


def _names(target: ast.AST, key: str) -> bool:
    return any(key_of(n) == key for n in ast.walk(target))


def _unwrapped(node: ast.expr) -> ast.expr:
    """Return the model in calls that give it back: `torch.compile(model.to(device))`."""
    while isinstance(node, ast.Call):
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method == "compile" and node.args:
            node = node.args[0]
        elif method in WRAPPERS and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            break
    return node


_PROGRAM = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{before}
for epoch in range(3):
    {inside}
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
"""


def _program(before: str = "", inside: str = "pass") -> Run:
    return make_run(sources={"train.py": _PROGRAM.format(before=before, inside=inside)})


_COMPILE = "model = torch.compile(model)"

_MADE = "model = make_model(epoch)\n    "

FIRES = {
    "every epoch": _program(inside=_COMPILE),
    "every epoch, after a move": _program(inside=f"model = model.cuda()\n    {_COMPILE}"),
}

SILENT = {
    "once": _program(_COMPILE),
    "near miss: a new model for each fold": _program(inside=_MADE + _COMPILE),
    "near miss: made where it is compiled": _program(inside="model = torch.compile(Net())"),
    "near miss: in the first epoch": _program(inside=f"if epoch == 0:\n        {_COMPILE}"),
}
