"""Gradients of one's own against finite differences of their function, without running it.

Forward and backward are worked out on small square matrices, so that reductions, products and
broadcasting are understood; where anything is not, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from traindx.analysis.program.execution.values import (
    Choice,
    Items,
    Known,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.contents import SAME_NUMBERS
from traindx.analysis.program.training.custom_functions import CustomFunction
from traindx.analysis.program.training.elementwise import (
    SMOOTH,
    Array,
    NotUnderstood,
    PointwiseEvaluation,
)
from traindx.analysis.program.training.operations import Operation, operation_of

SIDE = 4  # rows and columns of the matrices
APART = 1e-5
OFF = 0.03  # of the largest slope; numerical differences are far more exact
REDUCES: dict[str, Callable[..., Any]] = {"mean": np.mean, "sum": np.sum}
FLIPS = frozenset({"t", "transpose"})
UNDERSTOOD = frozenset(REDUCES) | FLIPS | {"matmul", "rsqrt", "softmax", "numel"}
TROUBLES = (NotUnderstood, TypeError, ValueError, IndexError, RecursionError)


class MatrixEvaluation(PointwiseEvaluation):
    """Values on matrices: with sums and means along an axis, products and transposes."""

    def _computed(self, value: Value, depth: int) -> Any:
        if isinstance(value, Choice):
            return self.of(given_option(value), depth - 1)
        operation = operation_of(value)
        if operation is None or operation.name not in UNDERSTOOD or not operation.operands:
            return super()._computed(value, depth)
        first = np.asarray(self.of(operation.operands[0], depth - 1), dtype=np.float64)
        if operation.name in REDUCES:
            axis, kept = _axis(operation), _setting(operation, "keepdim", 2)
            return REDUCES[operation.name](first, axis=axis, keepdims=constant(kept) is True)
        if operation.name == "softmax":
            shifted = np.exp(first - first.max(axis=_axis(operation), keepdims=True))
            return shifted / shifted.sum(axis=_axis(operation), keepdims=True)
        if operation.name == "numel":
            return float(first.size)
        if operation.name == "matmul":
            return first @ np.asarray(self.of(operation.operands[1], depth - 1))
        return first.T if operation.name in FLIPS else 1.0 / np.sqrt(first)


def _setting(operation: Operation, name: str, position: int) -> Value | None:
    if name in operation.settings:
        return operation.settings[name]
    return next(iter(operation.operands[position : position + 1]), None)


def _axis(operation: Operation) -> int | None:
    given = _setting(operation, "dim", 1)
    axis = constant(given)
    if given is not None and not isinstance(axis, int):
        raise NotUnderstood
    return axis if isinstance(axis, int) else None


def given_option(value: Value) -> Value:
    """Return the one option of a choice that is not None: `if ctx.needs_input_grad[0]`."""
    known = value.options if isinstance(value, Choice) else (value,)
    real = [o for o in known if not (isinstance(o, Known) and o.value is None)]
    if len(real) != 1:
        raise NotUnderstood
    return real[0]


def _is_none(gradient: Value | None) -> bool:
    """Tell whether an input gets no gradient: it is a number that sets something."""
    return isinstance(gradient, Known) and gradient.value is None


def wrong_gradient(function: CustomFunction) -> Value | None:
    """Return what backward gives for an input though the slope of forward is another."""
    returned, inputs = function.backward.result, function.inputs
    if function.forward.result is None or len(function.backward.args) != 2:
        return None
    gradients = returned.members if isinstance(returned, Items) else [returned]
    if function.passes_on() or not _is_smooth(function.forward.result, inputs):
        return None
    draws = np.random.default_rng(0)
    known = [
        (v, draws.uniform(0.5, 1.5, () if _is_none(gradient) else (SIDE, SIDE)))
        for v, gradient in zip(inputs, gradients, strict=False)
        if not isinstance(v, Known)
    ]
    for position, (given, gradient) in enumerate(zip(inputs, gradients, strict=False)):
        if isinstance(given, Known) or gradient is None:
            continue
        try:
            with np.errstate(all="ignore"):
                claimed = given_option(gradient)
                leaves = (*inputs, function.backward.args[1])
                is_plain = _is_smooth(claimed, leaves)  # none that is clipped on purpose
                if is_plain and _is_wrong(function, known, inputs[position], claimed):
                    return claimed
        except TROUBLES:
            continue
    return None


def _is_wrong(
    function: CustomFunction, known: list[tuple[Value, Array]], given: Value, gradient: Value
) -> bool:
    events = function.story.events
    output = np.asarray(MatrixEvaluation(known, events).of(function.forward.result))
    upstream = np.random.default_rng(1).uniform(0.5, 1.5, output.shape)
    held = [*known, (function.backward.args[1], upstream)]
    claimed = np.asarray(MatrixEvaluation(held, events).of(gradient), dtype=np.float64)
    start = np.asarray(next(a for v, a in known if v is given))
    if claimed.shape != start.shape or not np.isfinite(claimed).all():
        return False
    slope = np.zeros_like(start)
    for place in np.ndindex(*start.shape):
        sides = []
        for shift in (APART, -APART):
            moved = start.copy()
            moved[place] += shift
            near = [(v, moved if v is given else a) for v, a in known]
            values = np.asarray(MatrixEvaluation(near, events).of(function.forward.result))
            sides.append(float(np.sum(upstream * values)))
        slope[place] = (sides[0] - sides[1]) / (2 * APART)
    return bool(np.isfinite(slope).all()) and _differs(slope, claimed)


def _differs(slope: Array, claimed: Array) -> bool:
    """Tell whether a gradient is no multiple of the slope: one may be scaled on purpose."""
    largest = float(np.abs(slope).max())
    if largest == 0.0 or not claimed.any():
        return False
    factor = float(np.sum(claimed * slope) / np.sum(slope * slope))
    return float(np.abs(claimed - factor * slope).max()) > OFF * largest * max(abs(factor), OFF)


def _is_smooth(output: Value, inputs: tuple[Value, ...]) -> bool:
    """Tell whether forward has slopes that do not jump, of more than one input or along an axis."""
    given = {id(v) for v in inputs}
    pending, names = [output], set[str]()
    while pending:
        value = pending.pop()
        operation = operation_of(value)
        if id(value) in given or isinstance(value, (Known, Items)):
            continue
        if operation is None or not isinstance(value, Result) or len(names) > 200:
            return False
        names.add(operation.name)
        pending.extend(operation.operands)
    is_given = any(id(v) in given for v in origins(output))
    return is_given and names <= SMOOTH | SAME_NUMBERS | UNDERSTOOD
