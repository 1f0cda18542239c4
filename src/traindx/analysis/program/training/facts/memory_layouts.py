"""How the dimensions of a tensor lie in memory, and what a view can join."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Items, Part, Value, constant
from traindx.analysis.program.shapes.sizes import Dim, Size, divided
from traindx.analysis.program.training.operations import Operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# operations on each element, whose result lies in memory as what they are given
ALIKE = frozenset(
    {"relu", "tanh", "sigmoid", "gelu", "silu", "exp", "log", "neg", "abs", "clone", "detach", "to",
     "float", "half", "double", "sqrt", "square", "leaky_relu", "elu", "clamp", "cuda", "cpu"}
)  # fmt: skip
SCALED = frozenset({"mul", "div", "add", "sub"})


def order_of(story: Story, value: Value | None, depth: int = 20) -> tuple[int, ...] | None:
    """Return how the dimensions of a tensor lie in memory, where a permutation set it."""
    if value is None or depth == 0:
        return None
    if isinstance(value, Part) and value.key in ("T", "mT"):
        rank = _rank(story, value.of)
        return _swapped(rank, -1, -2) if rank == 2 or (rank and value.key == "mT") else None
    operation = operation_of(value)
    if operation is None or not operation.operands:
        return None
    first = operation.operands[0]
    if operation.name in ALIKE:
        return order_of(story, first, depth - 1)
    if operation.name in SCALED and len(operation.operands) == 2:
        is_scaled = isinstance(constant(operation.operands[1]), (int, float))
        return order_of(story, first, depth - 1) if is_scaled else None
    made = _permutation(story, operation)
    before = None if made is None else order_of(story, first, depth - 1)
    if made is None or before is None:
        return made
    return tuple(before[i] for i in made) if len(before) == len(made) else None


def _permutation(story: Story, operation: Operation) -> tuple[int, ...] | None:
    first, *given = operation.operands
    named = [operation.settings[k] for k in ("dims", "dim0", "dim1") if k in operation.settings]
    given = [*given, *named]
    dims = given[0].members if len(given) == 1 and isinstance(given[0], Items) else given
    numbers = [n for n in map(constant, dims) if isinstance(n, int)]
    if len(numbers) != len(dims):
        return None
    if operation.name == "permute":
        rank = len(numbers)
        found = tuple(n % rank for n in numbers) if rank else ()
        return found if sorted(found) == list(range(rank)) and rank > 1 else None
    if operation.name == "t" and not numbers:
        return (1, 0)
    rank_known = _rank(story, first)
    if operation.name != "transpose" or len(numbers) != 2 or rank_known is None:
        return None
    is_inside = all(-rank_known <= n < rank_known for n in numbers)
    return _swapped(rank_known, *numbers) if is_inside else None


def _swapped(rank: int, one: int, other: int) -> tuple[int, ...]:
    order = list(range(rank))
    order[one], order[other] = order[other], order[one]
    return tuple(order)


def _rank(story: Story, value: Value) -> int | None:
    shape = story.shapes.shape(value)
    return None if shape is None or shape.is_open else len(shape.sizes)


def joins_apart(story: Story, tensor: Value, viewed: Value) -> bool:
    """Tell whether a view joins dimensions of a permuted tensor that lie apart in memory."""
    order = order_of(story, tensor)
    if order is None or order == tuple(range(len(order))):
        return False
    before, after = story.shapes.shape(tensor), story.shapes.shape(viewed)
    if after is None or after.is_open:
        return False
    if before is None or before.is_open or len(before.sizes) != len(order):
        return _joins_any(order, len(after.sizes))
    if any(size == 1 for size in before.sizes):
        return False
    if _joins_any(order, len(after.sizes)):
        return True
    return any(
        any(order[b] != order[a] + 1 for a, b in pairwise(group))
        for group in _groups(before.sizes, after.sizes)
    )


def _joins_any(order: tuple[int, ...], count: int) -> bool:
    """Tell whether fewer dimensions are left than there are, and no neighbours lie together."""
    return 0 < count < len(order) and not any(b == a + 1 for a, b in pairwise(order))


def _groups(before: Sequence[Dim], after: Sequence[Dim]) -> list[range]:
    """Return which dimensions a view surely makes one of."""
    front = 0
    while front < min(len(before), len(after)) and before[front] == after[front]:
        front += 1
    back = 0
    limit = min(len(before), len(after)) - front
    while back < limit and before[-1 - back] == after[-1 - back]:
        back += 1
    middle, made = range(front, len(before) - back), len(after) - back - front
    if made == 1 and len(middle) > 1:
        return [middle]
    return _known_groups(before, after) if made > 1 else []


def _known_groups(before: Sequence[Dim], after: Sequence[Dim]) -> list[range]:
    """Go through both from the front, as long as the sizes are known."""
    found: list[range] = []
    start, left = 0, list(after)
    while start < len(before) and left:
        wanted, at, total = left.pop(0), start, before[start]
        while total != wanted and at + 1 < len(before):
            rest = divided(wanted, total) if wanted != 0 else None
            if rest is None or isinstance(rest, Size) != isinstance(wanted, Size):
                return found
            at += 1
            total = total * before[at]
        if total != wanted:
            return found
        found.append(range(start, at + 1))
        start = at + 1
    return [group for group in found if len(group) > 1]
