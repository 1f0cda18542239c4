"""Scores of an overlap: what a count of agreements is divided by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Choice,
    Known,
    Value,
    constant,
    is_same,
    origins,
)
from traindx.analysis.program.training.counters import counter_of, counters, quotients
from traindx.analysis.program.training.operations import Operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

COUNTS = frozenset({"sum", "bincount", "count_nonzero"})
OVERLAPS = frozenset({"mul", "and", "and_", "logical_and", "bitwise_and", "eq", "minimum"})
DIAGONALS = frozenset({"diag", "diagonal", "numpy.diag", "numpy.diagonal"})
BOUNDS = frozenset({"clamp", "clamp_min", "maximum", "item", "float", "double", "cpu", "getitem",
                    "unsqueeze", "squeeze", "view", "to"})  # fmt: skip
MOST = 400  # values that a number is followed back through


def halved_overlaps(story: Story) -> Iterator[ProgramEvent]:
    """Yield where an overlap is divided by both areas together: neither IoU nor Dice."""
    known = counters(story)
    for event, above, below in quotients(story):
        if event.result is None or counter_of(_plain(below)[0], known) is not None:
            continue  # one count that grows
        is_half = _is_count(above) and _is_of_both(above, below)
        if (is_half or _is_of_matrix(above, below)) and not _is_doubled(story, event.result):
            yield event


def _plain(value: Value) -> tuple[Value, Operation | None]:
    """Look through bounds, small constants and what only reshapes."""
    operation = operation_of(value)
    while operation is not None and operation.operands:
        rest = operation.operands[1:]
        is_bound = operation.name in BOUNDS
        is_small = operation.name == "add" and len(rest) == 1 and isinstance(rest[0], Known)
        if not is_bound and not is_small:
            break
        value = operation.operands[0]
        operation = operation_of(value)
    return value, operation


def _is_count(value: Value, depth: int = 6) -> bool:
    """Tell whether a number counts elements: a sum, or one that grows by sums."""
    value, operation = _plain(value)
    if isinstance(value, Choice):
        return all(_is_count(o, depth - 1) for o in value.options)
    if operation is None or depth == 0:
        return False
    if operation.name == "add":
        grows = operation_of(operation.operands[0])
        is_grown = grows is None or grows.name in ("add", "zeros") or not grows.operands
        return is_grown and _is_count(operation.operands[1], depth - 1)
    return operation.name in COUNTS


def _is_of_matrix(above: Value, below: Value) -> bool:
    """Tell whether the diagonal of a confusion matrix is divided by both of its sums."""
    diagonal, operation = _plain(above)[1], _plain(below)[1]
    if diagonal is None or operation is None or diagonal.name not in DIAGONALS:
        return False
    sums = [_plain(v)[1] for v in operation.operands]
    if operation.name != "add" or len(sums) != 2 or any(s is None or s.name != "sum" for s in sums):
        return False
    known = [s for s in sums if s is not None]
    axes = {constant(next(iter((*s.operands[1:], *s.settings.values())), None)) for s in known}
    is_one = all(is_same(s.operands[0], diagonal.operands[0]) for s in known)
    return is_one and axes in ({0, 1}, {0, -1}, {-2, -1})


def _is_of_both(above: Value, below: Value) -> bool:
    """Tell whether a count of an overlap is divided by the counts of its two sides."""
    operation = _plain(below)[1]
    if operation is None or operation.name != "add" or len(operation.operands) != 2:
        return False
    one, other = operation.operands
    if not (_is_count(one) and _is_count(other)):
        return False
    overlap = {id(v): v for v in origins(above, MOST) if not isinstance(v, Known)}
    first = {id(v) for v in origins(one, MOST)} & overlap.keys()
    second = {id(v) for v in origins(other, MOST)} & overlap.keys()
    if not first - second or not second - first:
        return False
    names = {o.name for v in overlap.values() if (o := operation_of(v)) is not None}
    return bool(names & OVERLAPS) and "sub" not in names


def _is_doubled(story: Story, value: Value, depth: int = 3) -> bool:
    for user in story.made_from(value):
        operation = operation_of(user)
        if operation is None:
            continue
        if operation.name == "mul" and any(constant(v) in (2, 2.0) for v in operation.operands):
            return True
        if depth and operation.name in (*BOUNDS, "mean", "sum") and _is_doubled(
            story, user, depth - 1
        ):  # fmt: skip
            return True
    return False
