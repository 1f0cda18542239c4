"""Gradients of one's own against the slope of their function, at a few points."""

from __future__ import annotations

import numpy as np

from traindx.analysis.program.execution.values import Items, Value
from traindx.analysis.program.training.custom_functions import CustomFunction
from traindx.analysis.program.training.elementwise import (
    NotUnderstood,
    PointwiseEvaluation,
    is_smooth,
)
from traindx.analysis.program.training.gradient_checks import wrong_gradient
from traindx.model.run import Floats

POINTS = np.array([-2.3, -1.7, -0.9, -0.4, -0.15, 0.2, 0.45, 0.8, 1.6, 2.1])
APART = 1e-5
FLAT = 1e-6
SEVERAL = 3  # points
PLAIN = 0.05  # of the largest gradient
STRAIGHT = 1e-4  # slopes that differ by less belong to a line
OFF = 0.03  # of the largest slope; numerical differences are far more exact


def wrong_slope(function: CustomFunction) -> tuple[str, Value] | None:
    """Say how the gradient of a function contradicts its slope, and which value it is."""
    if not function.is_judged:
        return None
    said, returned = _contradiction(function), _first(function.backward.result)
    if said:
        return None if returned is None else (said, returned)
    wrong = wrong_gradient(function)
    return None if wrong is None else ("is not the slope of its forward", wrong)


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
