"""Gradients are clipped after they were applied."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import takewhile

from traindx.evidence import Finding, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.acts import Act, Do
from traindx.source.loops import TrainingLoop, training_loops
from traindx.source.module import argument
from traindx.source.patches import diff, inserting_before, removing

STEPS = (Do.STEP, Do.SCALER_STEP)
COMPUTES = (Do.BACKWARD, Do.GRAD, Do.MANUAL_UPDATE)


@detector(needs=("source",), suggests=("clip-after-step",))
def check(run: Run) -> Iterator[Finding]:
    """Gradients are clipped only after the optimizer has used them.

    ## What it detects
    A loop in which the clipping call comes after the step and before anything computes the next
    gradients, and none comes between `backward` and the step.

    ## Why it matters
    The clip never acts: the next `zero_grad` throws the clipped gradients away. The run is as
    exposed to large gradients as without it.

    ## What to do
    Move the clip between `backward()` (and `unscale_`) and `step()`.

    ## When it is wrong
    A clip that is there only to read the norm for logging does no harm after the step: one with an
    infinite bound is left alone. So are gradients that are written by hand, and a clip on the way
    to another optimizer's step.
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
    order = [a for a in loop.acts if a.do in (*COMPUTES, Do.CLIP, *STEPS)]
    clips = [i for i, a in enumerate(order) if a.do is Do.CLIP]
    if not clips:
        return None
    for i in clips:
        before = order[:i]
        last = before[-1] if before else None
        if last is None or last.do not in STEPS or last.loops != order[i].loops:
            return None
    first = clips[0]
    step, clip = order[first - 1], order[first]
    is_for_another = any(
        a.do in STEPS and _stepped(a) != _stepped(step) and a.loops == clip.loops
        for a in _until_computed(order[first + 1 :])
    )
    if is_for_another or _only_measures(clip) or _writes_gradients(loop, step, clip):
        return None
    return step, clip


def _stepped(step: Act) -> str:
    """The optimizer that steps, through its scaler too."""
    given = step.node.args if isinstance(step.node, ast.Call) else []
    is_scaled = step.do is Do.SCALER_STEP and given
    return ast.unparse(given[0]) if is_scaled else step.target


def _until_computed(acts: list[Act]) -> Iterator[Act]:
    """The acts that still see the gradients of before."""
    yield from takewhile(lambda a: a.do not in COMPUTES, acts)


def _only_measures(clip: Act) -> bool:
    """Tell whether a clip has no bound, so that it is there for the norm it returns."""
    call = clip.node
    bound = argument(call, "max_norm", 1) if isinstance(call, ast.Call) else None
    return bound is not None and re.search(r"\binf\b", ast.unparse(bound)) is not None


def _writes_gradients(loop: TrainingLoop, step: Act, clip: Act) -> bool:
    """Tell whether gradients are written by hand, or by what runs out of sight, in between."""
    if step.module is not clip.module:
        return False
    for node in ast.walk(step.module.function_of(clip.node) or loop.node):
        is_between = step.line < getattr(node, "lineno", 0) <= clip.line
        if not is_between or not isinstance(node, ast.Attribute):
            continue
        is_written = node.attr == "grad" and isinstance(node.ctx, ast.Store)
        is_changed = getattr(node.value, "attr", "") == "grad" and node.attr.endswith("_")
        if is_written or (is_changed and node.attr != "zero_"):
            return True
    return False


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

_BY_HAND = "for p, g in zip(params, torch.autograd.grad(model(data).sum(), params)): p.grad = g"

SILENT = {
    "near miss: gradients of another loss, by autograd.grad": _loop(
        "optimizer.step()", _BY_HAND, _CLIP, "second.step()"
    ),
    "near miss: gradients from out of sight": _loop(
        "optimizer.step()", "for p in params: p.grad = estimate(p)", _CLIP, "optimizer.step()"
    ),
    "near miss: two optimizers, one of them clipped": _loop(
        "optimizer.step()", _CLIP, "second_optimizer.step()"
    ),
    "near miss: only to read the norm": _loop(
        "optimizer.step()", "norm = " + _CLIP.replace("1.0", "float('inf')")
    ),
    "before the step": _loop(_CLIP, "optimizer.step()"),
    "no clip": _loop("optimizer.step()"),
    "near miss: before and after": _loop(_CLIP, "optimizer.step()", f"norm = {_CLIP}"),
}
