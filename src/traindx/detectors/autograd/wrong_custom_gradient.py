"""A custom function's backward contradicts the slope of its own forward."""

import numpy as np

from traindx.analysis.program.execution.values import Items, Value
from traindx.analysis.program.training.claims import cite, finding
from traindx.analysis.program.training.custom_functions import CustomFunction, custom_functions
from traindx.analysis.program.training.elementwise import (
    NotUnderstood,
    PointwiseEvaluation,
    is_smooth,
)
from traindx.analysis.program.training.gradient_checks import wrong_gradient
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.model.run import Floats
from traindx.registry import Findings, Run, detector

CAUSE = "incorrect-custom-backward"
POINTS = np.array([-2.3, -1.7, -0.9, -0.4, -0.15, 0.2, 0.45, 0.8, 1.6, 2.1])
APART = 1e-5
FLAT = 1e-6
SEVERAL = 3  # points
PLAIN = 0.05  # of the largest gradient
STRAIGHT = 1e-4  # slopes that differ by less belong to a line
OFF = 0.03  # of the largest slope; numerical differences are far more exact


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The gradient of a function of one's own is not the slope of its forward.

    ## What it detects
    A class with `forward` and `backward` of one tensor, made of arithmetic, comparisons, `where`,
    `clamp` and usual activations. Both are worked out at ten points: the gradient must not have the
    sign opposite to the slope, nor be 0 wherever there is a slope and pass where there is none, nor
    be negative where a function falls nowhere. For a smooth function it must be the slope, up to a
    constant factor. Smooth functions of several tensors, with sums, means and products of matrices,
    are compared with finite differences on small matrices.

    ## Why it matters
    The layers below are led away from the optimum, or get nothing where it matters. The loss may
    still fall a little, since the layers above learn.

    ## What to do
    Return `grad` times the derivative of `forward`, and test it with `torch.autograd.gradcheck`.

    ## When it is wrong
    Gradients that are other than the slope on purpose are left alone: straight-through estimators
    and surrogates of functions with steps or kinks, and the reversal of the gradient of a line.
    """
    for function in custom_functions(program_of(run)):
        said = _contradiction(function) if function.is_judged else ""
        returned = _first(function.backward.result)
        wrong = None if said or not function.is_judged else wrong_gradient(function)
        if wrong is not None:
            said, returned = "is not the slope of its forward", wrong
        if said and returned is not None:
            place = returned if returned.site is not None else function.backward
            output = function.forward.result
            shown = output if output is not None and output.site is not None else function.forward
            yield finding(
                f"The backward of {function.name} {said}",
                CAUSE,
                place,
                cite(shown, "the function"),
                cite(place, "its gradient, as it is written"),
                is_symptom=True,
            )


def _first(value: Value | None) -> Value | None:
    """The gradient of the first input."""
    return value.members[0] if isinstance(value, Items) and value.fields else value


def _contradiction(function: CustomFunction) -> str:
    """Say how a gradient contradicts its function; nothing if it does not or is not understood."""
    if not function.inputs or len(function.backward.args) != 2:
        return ""
    given, grad = function.inputs[0], function.backward.args[1]
    output, returned = function.forward.result, _first(function.backward.result)

    def at(points: Floats, value: Value | None) -> Floats:
        known = ((given, points), (grad, np.ones_like(points)))
        return np.asarray(
            PointwiseEvaluation(known, function.story.events).of(value), dtype=np.float64
        )

    try:
        with np.errstate(all="ignore"):
            slope = (at(POINTS + APART, output) - at(POINTS - APART, output)) / (2 * APART)
            claimed = at(POINTS, returned)
    except (NotUnderstood, TypeError, ValueError, RecursionError):
        return ""
    claimed = np.broadcast_to(claimed, slope.shape) if claimed.ndim == 0 else claimed
    if claimed.shape != POINTS.shape or slope.shape != POINTS.shape:
        return ""
    if not (np.isfinite(slope).all() and np.isfinite(claimed).all()):
        return ""
    return _judged(slope, claimed, is_smooth(output, function.inputs))


def _judged(slope: Floats, claimed: Floats, smooth: bool) -> str:
    has_slope, passes = np.abs(slope) > FLAT, np.abs(claimed) > FLAT
    if not has_slope.any() or np.ptp(slope) < STRAIGHT:
        return ""
    if np.all(claimed[has_slope] * slope[has_slope] < 0):
        return "has the opposite sign of its forward's slope"
    if not passes[has_slope].any() and passes[~has_slope].any():
        return "is 0 wherever its forward has a slope, and passes where it has none"
    # surrogates of a rising function differ in size, and none of them turns a gradient around
    turned = int(np.sum(claimed * _direction(slope) < -PLAIN * np.abs(claimed).max()))
    if turned >= SEVERAL:
        return (
            f"turns the gradient around at {turned} of {len(POINTS)} points, and its forward "
            "never turns"
        )
    factor = float(np.dot(claimed, slope) / np.dot(slope, slope))  # one that is scaled on purpose
    largest = np.abs(slope).max()
    misses = min(np.abs(claimed - slope).max(), np.abs(claimed - factor * slope).max()) / largest
    off = int(np.sum(np.abs(claimed - slope) > OFF * largest))
    if smooth and misses > OFF and off >= SEVERAL:
        return f"is not the slope of its forward at {off} of {len(POINTS)} points"
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


_PRODUCT = """
import torch
class Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = {gx}
        if ctx.needs_input_grad[1]:
            gw = x.t() @ g
        return gx, gw
y = Project.apply(torch.ones(3, 3), torch.ones(3, 3))
"""

_NORM = """
import torch
class Center(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        s = x.pow(2).sum(-1, keepdim=True).sqrt()
        ctx.save_for_backward(x, scale, s)
        return scale * x / s
    @staticmethod
    def backward(ctx, g):
        x, scale, s = ctx.saved_tensors
        h = g * scale
        return {gx}, (g * x / s).sum(0)
y = Center.apply(torch.ones(3, 3), torch.ones(3))
"""

FIRES = {
    "the matrix is not transposed": make_run(sources={"t.py": _PRODUCT.format(gx="g @ w")}),
    "the norm is taken for a constant": make_run(sources={"t.py": _NORM.format(gx="h / s")}),
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
    "near miss: the matrix is transposed": make_run(
        sources={"t.py": _PRODUCT.format(gx="g @ w.t()")}
    ),
    "near miss: the slope of the norm": make_run(
        sources={"t.py": _NORM.format(gx="h / s - x * (h * x).sum(-1, keepdim=True) / s.pow(3)")}
    ),
    "near miss: both inputs are one": make_run(
        sources={
            "t.py": _PRODUCT.format(gx="g @ w.t()").replace(
                "y = Project.apply(torch.ones(3, 3), torch.ones(3, 3))",
                "z = torch.ones(3, 3)\ny = Project.apply(z, z)",
            )
        }
    ),
    "near miss: clipped on purpose": make_run(
        sources={"t.py": _PRODUCT.format(gx="(g @ w.t()).clamp(-0.1, 0.1)")}
    ),
    "near miss: half of the slope on purpose": make_run(
        sources={"t.py": _PRODUCT.format(gx="0.5 * (g @ w.t())")}
    ),
    "right": _run("x.clamp(min=0)", "grad * (x > 0).float()"),
    "near miss: straight through a step": _run("torch.sign(x)", "grad * (x.abs() < 1)"),
    "near miss: a gradient is reversed on purpose": _run("x.clone()", "-grad"),
    "near miss: a smooth surrogate": _run("x.clamp(min=0)", "grad * torch.sigmoid(4 * x)"),
    "near miss: passes beyond the clamp": _run("x.clamp(-1, 1)", "grad"),
    "not understood": _run("my_kernel(x)", "-grad * other_kernel(x)"),
}
