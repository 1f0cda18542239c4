"""A custom function's backward contradicts the slope of its own forward."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx.evidence import Finding, Strength
from traindx.model import Floats, Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.elementwise import Unknown, values_of
from traindx.source.module import Function

CAUSE = "incorrect-custom-backward"
POINTS = np.array([-2.3, -1.7, -0.9, -0.4, -0.15, 0.2, 0.45, 0.8, 1.6, 2.1])
APART = 1e-5
FLAT = 1e-6
SEVERAL = 3  # points
PLAIN = 0.05  # of the largest gradient
STRAIGHT = 1e-4  # slopes that differ by less belong to a line


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Iterator[Finding]:
    """The gradient of a function of one's own is 0 where it has a slope, or of the wrong sign.

    ## What it detects
    A class with `forward` and `backward` of one tensor, made of arithmetic, comparisons, `where`,
    `clamp` and usual activations. Both are worked out at ten points from their source: the
    gradient must not have the sign opposite to the slope, nor be 0 wherever there is a slope and
    pass where there is none, nor be negative where a function falls nowhere.

    ## Why it matters
    The layers below are led away from the optimum, or get nothing where it matters. The loss may
    still fall a little, since the layers above learn.

    ## What to do
    Return `grad` times the derivative of `forward`, and test it with `torch.autograd.gradcheck`.

    ## When it is wrong
    Gradients that are other than the slope on purpose are left alone: straight-through estimators
    and surrogates of steps, whose slope is 0, and the reversal of the gradient of a line.
    """
    project = project_of(run)
    for module in project.training_modules:
        for name, backward in module.functions.items():
            cls, _, method = name.rpartition(".")
            forward = module.functions.get(f"{cls}.forward")
            short = cls.rpartition(".")[2]
            if method != "backward" or forward is None or f"{short}.apply" not in module.text:
                continue
            said = _contradiction(forward, backward)
            if said:
                yield Finding(
                    claim=f"The backward of {short} {said}",
                    strength=Strength.STRONG,
                    evidence=(
                        module.cite(forward.body[-1], "the function"),
                        module.cite(backward.body[-1], "its gradient, as it is written"),
                    ),
                    shows=CAUSE,
                    is_symptom=True,
                    location=module.location(backward.body[-1]),
                )


def _contradiction(forward: Function, backward: Function) -> str:
    """Say how a gradient contradicts its function; nothing if it does not or is not understood."""
    given, grad = forward.args.args, backward.args.args
    if len(given) != 2 or len(grad) != 2:
        return ""
    try:
        saved: dict[str, Floats] = {}
        with np.errstate(all="ignore"):
            values_of(forward, {given[1].arg: POINTS}, saved)
            above = values_of(forward, {given[1].arg: POINTS + APART}, {})
            below = values_of(forward, {given[1].arg: POINTS - APART}, {})
            told = values_of(backward, {grad[1].arg: np.ones_like(POINTS)}, saved)
    except (Unknown, TypeError, ValueError, RecursionError):
        return ""
    slope = (above - below) / (2 * APART)
    told = np.broadcast_to(told, slope.shape) if told.ndim == 0 else told
    if told.shape != POINTS.shape or not (np.isfinite(slope).all() and np.isfinite(told).all()):
        return ""
    has_slope, passes = np.abs(slope) > FLAT, np.abs(told) > FLAT
    if not has_slope.any() or np.ptp(slope) < STRAIGHT:
        return ""
    if np.all(told[has_slope] * slope[has_slope] < 0):
        return "has the opposite sign of its forward's slope"
    if not passes[has_slope].any() and passes[~has_slope].any():
        return "is 0 wherever its forward has a slope, and passes where it has none"
    # surrogates of a rising function differ in size, and none of them turns a gradient around
    turned = int(np.sum(told * _direction(slope) < -PLAIN * np.abs(told).max()))
    if turned >= SEVERAL:
        return (
            f"turns the gradient around at {turned} of {len(POINTS)} points, and its forward "
            "never turns"
        )
    return ""


def _direction(slope: Floats) -> float:
    """1 for a function that falls nowhere, −1 for one that rises nowhere, else 0."""
    if np.all(slope > -FLAT):
        return 1.0
    return -1.0 if np.all(slope < FLAT) else 0.0


_SOURCE = """
import torch
class Act(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return {backward}
y = Act.apply(torch.ones(3))
"""


def _run(forward: str, backward: str) -> Run:
    text = _SOURCE.format(forward=forward, backward=backward)
    return make_run(sources={"train.py": text})


FIRES = {
    "the mask is the wrong way round": _run("x.clamp(min=0)", "grad * (x < 0)"),
    "the sign is wrong": _run(
        "torch.where(x > 0, x, 0.1 * x)", "-grad * torch.where(x > 0, 1, 0.1)"
    ),
    "the input in place of the slope": _run("x.clamp(min=0)", "grad * x"),
    "a sigmoid with a minus": _run(
        "torch.sigmoid(x)", "grad * torch.sigmoid(x) * (torch.sigmoid(x) - 1)"
    ),
}

SILENT = {
    "right": _run("x.clamp(min=0)", "grad * (x > 0).float()"),
    "near miss: straight through a step": _run("torch.sign(x)", "grad * (x.abs() < 1)"),
    "near miss: a gradient is reversed on purpose": _run("x.clone()", "-grad"),
    "near miss: a smooth surrogate": _run("x.clamp(min=0)", "grad * torch.sigmoid(4 * x)"),
    "near miss: passes beyond the clamp": _run("x.clamp(-1, 1)", "grad"),
    "not understood": _run("my_kernel(x)", "-grad * other_kernel(x)"),
}
