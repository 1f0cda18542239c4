"""What a mask of attention blocks, worked out on a small square of positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    External,
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    is_same,
)
from traindx.analysis.program.training.layers import layer_kind
from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.operations import Operation, operation_of

SIDE = 5  # positions: enough to tell a triangle with its diagonal from one without
FAR = -1e3  # a score that low is as good as −inf
MASKS = ("attn_mask", "src_mask", "tgt_mask", "mask")
FILLED = {"ones": 1.0, "zeros": 0.0}
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "add": np.add, "sub": np.subtract, "mul": np.multiply,
    "and": np.logical_and, "or": np.logical_or, "logical_and": np.logical_and,
    "logical_or": np.logical_or,
}  # fmt: skip
MOVES = frozenset({"to", "float", "contiguous", "clone", "cuda", "cpu", "detach", "type", "half",
                   "bfloat16", "type_as"})  # fmt: skip
BATCHES = frozenset({"unsqueeze", "expand", "view"})  # dimensions in front of a whole matrix
FLIPS = frozenset({"t", "transpose"})


class NoMatrix(Exception):
    """A mask that depends on more than the positions."""


class MaskMatrix:
    """The matrix of a mask: rows are queries, columns keys; every length is `SIDE`."""

    def __init__(self) -> None:
        self.made: list[Result] = []  # the tensors on the way
        self._length: Value | None = None

    def of(self, value: Value, depth: int = 24) -> Any:
        """Return the numbers of a mask; raise `NoMatrix` where they are not known."""
        if depth == 0:
            raise NoMatrix
        number = number_of(value)
        if number is not None:
            return number
        if isinstance(value, Known) and isinstance(value.value, bool):
            return value.value
        if isinstance(value, Part) and value.key in ("T", "mT"):
            return self.of(value.of, depth - 1).T
        operation = operation_of(value)
        if operation is None or not isinstance(value, Result):
            raise NoMatrix
        self.made.append(value)
        return self._computed(operation, value, depth)

    def _computed(self, operation: Operation, value: Result, depth: int) -> Any:
        name, operands = operation.name, operation.operands
        if name in (*FILLED, "full", "eye", "arange"):
            return self._new(operation)
        if not operands:
            raise NoMatrix
        first = self.of(operands[0], depth - 1)
        if name in ("triu", "tril"):
            given = operation.settings.get("diagonal", next(iter(operands[1:]), None))
            shift = 0 if given is None else constant(given)
            if not isinstance(shift, int) or np.shape(first) != (SIDE, SIDE):
                raise NoMatrix
            return (np.triu if name == "triu" else np.tril)(first, shift)
        if name in PAIRS and len(operands) == 2:
            return PAIRS[name](first, self.of(operands[1], depth - 1))
        if name in ("operator.invert", "logical_not", "bitwise_not"):
            return np.logical_not(first)
        if name == "masked_fill" and len(operands) > 2:
            where, what = (self.of(v, depth - 1) for v in operands[1:3])
            return np.where(np.asarray(where) != 0, float(what), first)
        if name in FLIPS:
            return np.asarray(first).T
        return self._moved(name, first, value)

    def _moved(self, name: str, first: Any, value: Result) -> Any:
        if name == "bool" or any(_is_bool(v) for v in value.inputs if name == "to"):
            return np.asarray(first) != 0
        if name == "float":
            return np.asarray(first, dtype=np.float64)
        if name == "getitem" and len(value.args) > 1:
            return _indexed(np.asarray(first), value.args[1])
        if name == "unsqueeze" and np.ndim(first) == 1 and len(value.args) == 1:
            axis = constant(value.args[0])
            if axis in (0, 1, -1):
                return np.expand_dims(first, int(axis))
        is_matrix = np.shape(first) == (SIDE, SIDE)
        if name in MOVES or (is_matrix and name in BATCHES):
            return first
        raise NoMatrix

    def _new(self, operation: Operation) -> Any:
        sides = list(operation.operands)
        fill = FILLED.get(operation.name)
        if operation.name == "full":
            fill = None if len(sides) < 2 else number_of(sides[1])
            sides = sides[:1]
        if sides and isinstance(sides[0], Items):
            sides = list(sides[0].members)
        if not sides or not all(self._is_length(side) for side in sides):
            raise NoMatrix
        if operation.name in ("arange", "eye"):
            if len(sides) != 1:
                raise NoMatrix
            return np.arange(SIDE) if operation.name == "arange" else np.eye(SIDE)
        if fill is None or len(sides) > 2:
            raise NoMatrix
        made = np.full((SIDE,) * len(sides), fill)
        return made != 0 if _is_bool(operation.settings.get("dtype")) else made

    def _is_length(self, side: Value) -> bool:
        """Tell whether a size is the one length that all sizes are."""
        self._length = self._length or side
        return is_same(self._length, side)


def _is_bool(value: Value | None) -> bool:
    return isinstance(value, External) and value.name in ("torch.bool", "builtins.bool")


def _indexed(array: Any, key: Value) -> Any:
    """`x[None, :]`, `x[:, None]`: of one dimension to two."""
    keys = key.members if isinstance(key, Items) else [key]
    plain = [None if isinstance(k, Known) and k.value is None else _whole(k) for k in keys]
    if array.ndim != 1 or len(plain) > 2 or None not in plain:
        raise NoMatrix
    return array[tuple(plain)]


def _whole(key: Value) -> slice:
    is_slice = isinstance(key, Result) and key.maker == "builtins.slice"
    if not is_slice or any(constant(a) is not None for a in key.inputs):
        raise NoMatrix
    return slice(None)


@dataclass(frozen=True, slots=True)
class MaskUse:
    """A mask where it is used: whether truth values allow, and whether numbers are added."""

    mask: Value
    allows: bool = False
    adds: bool = False


def mask_uses(event: ProgramEvent) -> Iterator[MaskUse]:
    """Yield the masks between queries and keys that an event uses."""
    kind = layer_kind(event.receiver) if event.name == "()" else ""
    if kind == "MultiheadAttention" or kind.startswith("Transformer"):
        yield from (MaskUse(event.kwargs[n], adds=True) for n in MASKS if n in event.kwargs)
        return
    operation = operation_of(event.result)
    if operation is None or not operation.operands:
        return
    given = operation.argument("attn_mask")
    if operation.name == "scaled_dot_product_attention" and given is not None:
        yield MaskUse(given, allows=True, adds=True)
    elif operation.name in ("softmax", "log_softmax"):
        yield from _uses_in_scores(operation.operands[0])


def _uses_in_scores(scores: Value) -> Iterator[MaskUse]:
    made = operation_of(scores)
    if made is None:
        return
    if made.name == "masked_fill" and len(made.operands) > 2 and _is_far(made.operands[2]):
        yield MaskUse(made.operands[1])
    elif made.name == "where" and len(made.operands) == 3:
        test, one, other = made.operands
        if _is_far(one) or _is_far(other):
            yield MaskUse(test, allows=_is_far(other))
    elif made.name == "add":
        yield from (MaskUse(v, adds=True) for v in made.operands)


def _is_far(value: Value) -> bool:
    number = number_of(value)
    return number is not None and number <= FAR


def blocked_rows(use: MaskUse) -> list[Result]:
    """Return how a mask was made under which a position sees nothing; empty where none is shown.

    A mask of truth values blocks what is true, or allows it; one that is added blocks by −inf.
    """
    work = MaskMatrix()
    try:
        with np.errstate(all="ignore"):
            matrix = np.asarray(work.of(use.mask))
    except (NoMatrix, TypeError, ValueError, IndexError):
        return []
    if matrix.shape != (SIDE, SIDE):
        return []
    is_added = use.adds and matrix.dtype != bool
    blocked = matrix <= FAR if is_added else (matrix != 0) != use.allows
    is_closed = bool(blocked.all(axis=1).any()) and not blocked.all()
    return work.made if is_closed else []
