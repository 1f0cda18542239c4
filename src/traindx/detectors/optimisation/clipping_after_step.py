"""Gradients are clipped after they were applied."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.patches import diff, inserting_before, removing

STEPS = (Do.STEP, Do.SCALER_STEP)


@detector(needs=("source",), suggests=("clip-after-step",))
def check(run: Run) -> Iterator[Finding]:
    """Gradients are clipped only after the optimizer has used them.

    ## What it detects
    A loop in which the clipping call comes after the step and before the next `backward`, and none
    comes between `backward` and the step.

    ## Why it matters
    The clip never acts: the next `zero_grad` throws the clipped gradients away. The run is as
    exposed to large gradients as without it.

    ## What to do
    Move the clip between `backward()` (and `unscale_`) and `step()`.

    ## When it is wrong
    A clip that is there only to read the norm for logging does no harm after the step.
    """
    for loop in training_loops(project_of(run)):
        late = _late_clip(loop)
        if late is None:
            continue
        step, clip = late
        yield Finding(
            claim="Gradients are clipped after the step, where it has no effect",
            strength=Strength.STRONG,
            evidence=(
                cite_source(step.module.path, step.line, "the step uses the gradients here"),
                cite_source(clip.module.path, clip.line, "they are clipped only here"),
            ),
            shows="clip-after-step",
            location=clip.location,
            patch=_patch(step, clip),
        )


def _late_clip(loop: TrainingLoop) -> tuple[Act, Act] | None:
    order = [a for a in loop.acts if a.do in (Do.BACKWARD, Do.CLIP, *STEPS)]
    clips = [i for i, a in enumerate(order) if a.do is Do.CLIP]
    if not clips:
        return None
    for i in clips:
        before = order[:i]
        last = before[-1] if before else None
        if last is None or last.do not in STEPS or last.loops != order[i].loops:
            return None
    first = clips[0]
    return order[first - 1], order[first]


def _patch(step: Act, clip: Act) -> str | None:
    if clip.statement is None or step.statement is None or clip.module is not step.module:
        return None
    module = clip.module
    first, last = clip.statement.lineno, clip.statement.end_lineno or clip.statement.lineno
    text = "\n".join(line.strip() for line in module.lines[first - 1 : last])
    if first != last:
        return None
    return diff(
        module, removing(module, clip.statement), inserting_before(module, step.statement, text)
    )


_LOOP = """
import torch

optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for data, target in train_loader:
    optimizer.zero_grad()
    loss = criterion(model(data), target)
    loss.backward()
{order}
"""
_CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


def _loop(*order: str) -> Run:
    body = "\n".join(f"    {line}" for line in order)
    return make_run(sources={"train.py": _LOOP.format(order=body)})


FIRES = {
    "after the step": _loop("optimizer.step()", _CLIP),
    "by its old name": _loop("optimizer.step()", _CLIP.replace("norm_", "norm")),
}

SILENT = {
    "before the step": _loop(_CLIP, "optimizer.step()"),
    "no clip": _loop("optimizer.step()"),
    "near miss: before and after": _loop(_CLIP, "optimizer.step()", f"norm = {_CLIP}"),
}
