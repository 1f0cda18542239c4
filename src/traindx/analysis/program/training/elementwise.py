"""Functions of one number, worked out from what a program computes, without running it.

Arithmetic, comparisons, `where`, `clamp` and the usual activations are understood. Anything else
raises `NotUnderstood`, and nothing is said about the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Known, Result, Value
from traindx.analysis.program.training.contents import SAME_NUMBERS
from traindx.analysis.program.training.operations import Operation, is_in_place, operation_of

Array = np.ndarray[Any, np.dtype[np.float64]]


class NotUnderstood(Exception):
    """Something that is not understood."""


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


PLAIN: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "neg": np.negative, "exp": np.exp, "tanh": np.tanh, "log": np.log, "sqrt": np.sqrt,
    "abs": np.abs, "sigmoid": _sigmoid, "sin": np.sin, "cos": np.cos, "square": np.square,
    "softplus": lambda x: np.log1p(np.exp(x)), "silu": lambda x: x * _sigmoid(x),
    "relu": lambda x: np.maximum(x, 0.0), "sign": np.sign, "floor": np.floor, "round": np.round,
    "gt": np.greater, "lt": np.less, "ge": np.greater_equal, "le": np.less_equal, "eq": np.equal,
    "ne": np.not_equal, "and": np.logical_and, "or": np.logical_or, "invert": np.logical_not,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_not": np.logical_not,
    "zeros_like": np.zeros_like, "ones_like": np.ones_like, "maximum": np.maximum,
    "minimum": np.minimum, "log1p": np.log1p, "expm1": np.expm1, "reciprocal": np.reciprocal,
    "erf": np.vectorize(math.erf),
}  # fmt: skip
# what has a slope that does not jump
SMOOTH = frozenset(
    {"add", "sub", "mul", "div", "pow", "neg", "exp", "tanh", "log", "sqrt", "sigmoid", "sin",
     "cos", "square", "softplus", "silu", "log1p", "expm1", "erf"}
)  # fmt: skip


class PointwiseEvaluation:
    """Values at several points, by what some of them are known to be."""

    def __init__(
        self, known: Iterable[tuple[Value, Array]], events: Iterable[ProgramEvent] = ()
    ) -> None:
        self._known = {id(value): array for value, array in known}
        self._changes: dict[int, list[ProgramEvent]] = {}
        for event in events:
            changed = event.receiver if event.receiver is not None else next(iter(event.args), None)
            is_change = event.act is EventForm.STORE or is_in_place(event.name)
            if changed is not None and is_change and isinstance(changed, Result):
                self._changes.setdefault(id(changed), []).append(event)

    def of(self, value: Value | None, depth: int = 60) -> Any:
        """Return what a value is at the points; raise where that is not understood."""
        if value is None or depth == 0:
            raise NotUnderstood
        found = self._known.get(id(value))
        if found is None:
            found = self._computed(value, depth)
        for event in self._changes.get(id(value), ()):
            found = self._changed(found, event, depth)
        return found

    def _computed(self, value: Value, depth: int) -> Any:
        if isinstance(value, Known) and isinstance(value.value, (int, float)):
            return float(value.value)
        operation = operation_of(value)
        if operation is None or not operation.operands or is_in_place_result(value):
            raise NotUnderstood
        if operation.name in ("clamp", "clamp_min", "clamp_max"):
            return self._clamped(operation, depth)
        if operation.name in SAME_NUMBERS or operation.name in ("bool", "masked"):
            return self.of(operation.operands[0], depth - 1)
        operands = [self.of(v, depth - 1) for v in operation.operands]
        if operation.name == "where" and len(operands) == 3:
            return np.where(np.asarray(operands[0]) != 0, operands[1], operands[2])
        if operation.name == "masked_fill" and len(operands) == 3:
            return np.where(np.asarray(operands[1]) != 0, operands[2], operands[0])
        function = PLAIN.get(operation.name)
        if function is None or operation.settings:
            raise NotUnderstood
        return np.asarray(function(*operands), dtype=np.float64)

    def _clamped(self, operation: Operation, depth: int) -> Any:
        found = self.of(operation.operands[0], depth - 1)
        names = {"clamp": ("min", "max"), "clamp_min": ("min",), "clamp_max": ("max",)}
        bounds = dict(zip(names[operation.name], operation.operands[1:], strict=False))
        bounds |= {k: v for k, v in operation.settings.items() if k in ("min", "max")}
        for name, bound in bounds.items():
            if isinstance(bound, Known) and bound.value is None:
                continue
            function = np.maximum if name == "min" else np.minimum
            found = function(found, self.of(bound, depth - 1))
        return found

    def _changed(self, found: Any, event: ProgramEvent, depth: int) -> Any:
        """`grad[x < 0] = 0`."""
        if event.act is not EventForm.STORE or event.name != "[]" or len(event.args) < 2:
            raise NotUnderstood
        mask = np.asarray(self.of(event.args[1], depth - 1)) != 0
        return np.where(mask, self.of(event.args[0], depth - 1), found)


def is_in_place_result(value: Value) -> bool:
    """Tell whether a value is what a change in place gives back."""
    is_method = isinstance(value, Result) and value.receiver is not None
    return is_method and isinstance(value, Result) and is_in_place(value.maker)


def is_smooth(value: Value | None, known: Iterable[Value], depth: int = 60) -> bool:
    """Tell whether a function is made of operations whose slopes do not jump."""
    if value is None or depth == 0:
        return False
    given = list(known)
    if isinstance(value, Known) or any(value is v for v in given):
        return True
    operation = operation_of(value)
    if operation is None or operation.name not in SMOOTH | SAME_NUMBERS:
        return False
    return all(is_smooth(v, given, depth - 1) for v in operation.operands)
