"""The gradient scaler steps and is never updated."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import key_of
from traindx.source.patches import diff, inserting_after


@detector(needs=("source",), suggests=("missing-scaler-update",))
def check(run: Run) -> Iterator[Finding]:
    """A training loop steps through a gradient scaler and never updates it.

    ## What it detects
    A loop with `scaler.scale(loss).backward()` and `scaler.step(optimizer)` in which nothing calls
    `scaler.update()`.

    ## Why it matters
    The scale never adapts. After the first overflow every step is skipped for good, and a second
    `unscale_` raises because the scaler still thinks that it is within the same step.

    ## What to do
    Call `scaler.update()` once per iteration, after the last `scaler.step`.

    ## When it is wrong
    A scaler that is handed to a function out of sight may be updated there; such loops are left
    alone.
    """
    for loop in training_loops(project_of(run)):
        steps = loop.does(Do.SCALER_STEP)
        if not steps or loop.does(Do.SCALER_UPDATE):
            continue
        last = steps[-1]
        if not _is_gradient_scaler(loop, last) or _is_handed_on(loop, last.target):
            continue
        statement = last.statement
        patch = None
        if statement is not None:
            call = f"{last.target}.update()"
            patch = diff(last.module, inserting_after(last.module, statement, call))
        yield Finding(
            claim=f"The loop calls `{last.target}.step` and never `{last.target}.update()`",
            strength=Strength.STRONG,
            evidence=(last.module.cite(last.node, "the scaler steps here, and is not updated"),),
            shows="missing-scaler-update",
            is_symptom=True,
            location=last.location,
            patch=patch,
        )


def _is_gradient_scaler(loop: TrainingLoop, step: Act) -> bool:
    """Tell whether the scaler also scales the loss of this loop."""
    subjects = (a.subject for a in loop.does(Do.BACKWARD))
    funcs = (s.func for s in subjects if isinstance(s, ast.Call))
    scales = (f for f in funcs if isinstance(f, ast.Attribute) and f.attr == "scale")
    return any(key_of(f.value) == step.target for f in scales)


def _is_handed_on(loop: TrainingLoop, scaler: str) -> bool:
    for node in ast.walk(loop.node):
        if isinstance(node, ast.Call):
            given = [*node.args, *(k.value for k in node.keywords)]
            if any(key_of(a) == scaler for a in given):
                return True
    return False


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for data, target in loader:
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(data), target)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    {more}
"""


def _loop(more: str) -> Run:
    return make_run(sources={"train.py": _LOOP.format(more=more)})


FIRES = {"no update": _loop("pass")}

SILENT = {
    "updated": _loop("scaler.update()"),
    "near miss: handed to a function out of sight": _loop("finish(scaler)"),
    "near miss: a scaler of features": make_run(
        sources={"train.py": "for x in data:\n    scaler.step(x)\n    loss.backward()\n"}
    ),
}
