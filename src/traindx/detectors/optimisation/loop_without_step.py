"""A training loop that computes gradients and never applies them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import key_of
from traindx.source.patches import diff, inserting_after
from traindx.source.values import Kind

UPDATES = (Do.STEP, Do.SCALER_STEP, Do.MANUAL_UPDATE, Do.GRAD)


@detector(needs=("source",), suggests=("missing-optimizer-step",))
def check(run: Run) -> Iterator[Finding]:
    """A training loop calls backward and never steps its optimizer.

    ## What it detects
    A loop that clears the gradients of an optimizer and calls `backward`, in which neither that
    optimizer nor any other is ever stepped, by hand or through a scaler or framework.

    ## Why it matters
    Gradients are computed and thrown away. The weights stay as they were initialised and the loss
    stays at the level of guessing, without any error.

    ## What to do
    Call `optimizer.step()` after `backward()`.

    ## When it is wrong
    A loop that uses gradients for something else (attacks, saliency, statistics) reads `.grad`;
    such loops, and loops that hand the optimizer to a function out of sight, are left alone.
    """
    for loop in training_loops(project_of(run)):
        cleared = _own_optimizer(loop)
        backward = loop.does(Do.BACKWARD)
        if cleared is None or not backward or loop.does(*UPDATES):
            continue
        if _uses_gradients_otherwise(loop) or _is_handed_on(loop, cleared.target):
            continue
        last = backward[-1]
        yield Finding(
            claim=f"The training loop calls backward and never {cleared.target}.step()",
            strength=Strength.STRONG,
            evidence=(
                cite_source(last.module.path, last.line, "gradients are computed here"),
                cite_source(
                    loop.module.path,
                    getattr(loop.node, "lineno", 1),
                    f"no call of {cleared.target}.step() in this loop",
                ),
            ),
            shows="missing-optimizer-step",
            is_symptom=True,
            location=last.location,
            patch=_patch(last, cleared.target),
        )


def _own_optimizer(loop: TrainingLoop) -> Act | None:
    """The optimizer whose gradients the loop clears, where we saw how it was made."""
    for act in loop.does(Do.ZERO_GRAD):
        if act.value.kind is Kind.OPTIMIZER and act.value.is_certain:
            return act
    return None


def _uses_gradients_otherwise(loop: TrainingLoop) -> bool:
    nodes = (n for n in ast.walk(loop.node) if isinstance(n, ast.Attribute))
    return any(n.attr == "grad" and isinstance(n.ctx, ast.Load) for n in nodes)


def _is_handed_on(loop: TrainingLoop, optimizer: str) -> bool:
    """Tell whether a call in the loop gets the optimizer as an argument: it may step it."""
    for node in ast.walk(loop.node):
        if isinstance(node, ast.Call):
            given = [*node.args, *(k.value for k in node.keywords)]
            if any(key_of(a) == optimizer for a in given) and not _is_followed(loop, node):
                return True
    return False


def _is_followed(loop: TrainingLoop, call: ast.Call) -> bool:
    """Tell whether the walk went into a call, so that a step in it would have been seen."""
    name = key_of(call.func) or ""
    return any(a.function is not None and a.function.name == name for a in loop.acts)


def _patch(backward: Act, optimizer: str) -> str | None:
    statement = backward.statement
    if statement is None:
        return None
    edit = inserting_after(backward.module, statement, f"{optimizer}.step()")
    return diff(backward.module, edit)


_LOOP = """
import torch
from torch import nn, optim

model = nn.Linear(784, 10)
criterion = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(10):
    for data, target in train_loader:
        optimizer.zero_grad()
        output = model(data.view(data.size(0), -1))
        loss = criterion(output, target)
        loss.backward()
{more}
"""

FIRES = {"no step at all": make_run(sources={"train.py": _LOOP.format(more="")})}

SILENT = {
    "a right loop": make_run(sources={"train.py": _LOOP.format(more="        optimizer.step()")}),
    "near miss: a scaler steps": make_run(
        sources={"train.py": _LOOP.format(more="        scaler.step(optimizer)")}
    ),
    "near miss: handed to a function out of sight": make_run(
        sources={"train.py": _LOOP.format(more="        utils.apply(optimizer, loss)")}
    ),
    "gradients are looked at, not applied": make_run(
        sources={"train.py": _LOOP.format(more="        saliency = data.grad.abs()")}
    ),
}
