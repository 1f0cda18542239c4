"""Gradients are cleared between backward and step."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.patches import diff, inserting_after, removing

STEPS = (Do.STEP, Do.SCALER_STEP)


@detector(needs=("source",), suggests=("gradients-cleared-before-step",))
def check(run: Run) -> Iterator[Finding]:
    """Gradients are cleared after backward and before the optimizer steps.

    ## What it detects
    In one loop and without conditions: `backward`, then `zero_grad` of the same optimizer, then its
    `step`, with no other `backward` in between.

    ## Why it matters
    The optimizer steps on zeros (or on nothing): the weights do not move, apart from momentum and
    weight decay, and no error is raised.

    ## What to do
    Move `zero_grad()` before `backward()`, or after `step()`.

    ## When it is wrong
    With several optimizers the cleared one may not be the stepped one; only the same name counts.
    """
    for loop in training_loops(project_of(run)):
        for cleared, step in _cleared_then_stepped(loop):
            yield Finding(
                claim=f"Gradients are wiped by {cleared.target}.zero_grad() before the step",
                strength=Strength.STRONG,
                evidence=(
                    cite_source(cleared.module.path, cleared.line, "gradients are cleared here"),
                    cite_source(step.module.path, step.line, "and the step comes only here"),
                ),
                shows="gradients-cleared-before-step",
                is_symptom=True,
                location=cleared.location,
                patch=_patch(cleared, step),
            )
            break


def _cleared_then_stepped(loop: TrainingLoop) -> Iterator[tuple[Act, Act]]:
    plain = [a for a in loop.acts if not a.guards]
    for i, cleared in enumerate(plain):
        if cleared.do is not Do.ZERO_GRAD or not cleared.target:
            continue
        before = [a for a in plain[:i] if a.loops == cleared.loops]
        after = [a for a in plain[i + 1 :] if a.loops == cleared.loops]
        computed = [a for a in before if a.do is Do.BACKWARD]
        stepped_since = computed and any(
            a.do in STEPS for a in before[before.index(computed[-1]) :]
        )
        following = next((a for a in after if a.do in (*STEPS, Do.BACKWARD)), None)
        if not computed or stepped_since or following is None or following.do is Do.BACKWARD:
            continue
        if following.target == cleared.target or following.do is Do.SCALER_STEP:
            yield cleared, following


def _patch(cleared: Act, step: Act) -> str | None:
    """Move the statement behind the step."""
    if cleared.statement is None or step.statement is None or cleared.module is not step.module:
        return None
    text = f"{cleared.target}.zero_grad()"
    module = cleared.module
    return diff(
        module,
        removing(module, cleared.statement),
        inserting_after(module, step.statement, text),
    )


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in train_loader:
    loss = criterion(model(data), target)
{order}
"""


def _loop(*order: str) -> Run:
    body = "\n".join(f"    {line}" for line in order)
    return make_run(sources={"train.py": _LOOP.format(order=body)})


FIRES = {"between": _loop("loss.backward()", "optimizer.zero_grad()", "optimizer.step()")}

SILENT = {
    "before": _loop("optimizer.zero_grad()", "loss.backward()", "optimizer.step()"),
    "after": _loop("loss.backward()", "optimizer.step()", "optimizer.zero_grad()"),
    "near miss: another optimizer is cleared": _loop(
        "loss.backward()", "other.zero_grad()", "optimizer.step()"
    ),
    "near miss: two backwards": _loop(
        "loss.backward()",
        "optimizer.zero_grad()",
        "(loss * 2).backward()",
        "optimizer.step()",
    ),
}
