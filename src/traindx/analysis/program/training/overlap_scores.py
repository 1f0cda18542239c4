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
from traindx.analysis.program.training.contents import Content, contents
from traindx.analysis.program.training.counters import (
    counter_of,
    counters,
    factors,
    quotients,
)
from traindx.analysis.program.training.gradients import runs_behind
from traindx.analysis.program.training.graphs import feeds_backward
from traindx.analysis.program.training.operations import Operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

COUNTS = frozenset({"sum", "bincount", "count_nonzero"})
OVERLAPS = frozenset({"mul", "and", "and_", "logical_and", "bitwise_and", "eq", "minimum"})
DIAGONALS = frozenset({"diag", "diagonal", "numpy.diag", "numpy.diagonal"})
BOUNDS = frozenset({"clamp", "clamp_min", "maximum", "item", "float", "double", "cpu", "getitem",
                    "unsqueeze", "squeeze", "view", "to"})  # fmt: skip
NEAR = 12  # values from an area to the tensor that it is the area of
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


def raw_overlaps(story: Story) -> Iterator[tuple[ProgramEvent, Value]]:
    """Yield the Dice, IoU or Tversky losses of raw scores, and what made the scores."""
    for event, above, below in quotients(story):
        scores = _raw_scores(above, below)
        is_loss = scores is not None and event.result is not None
        if scores is not None and is_loss and feeds_backward(story, event.result):  # type: ignore[arg-type]
            yield event, scores


def _raw_scores(above: Value, below: Value) -> Value | None:
    """Return the scores whose overlap with a target is divided by the areas of both."""
    sums = list(_terms(below))
    for product in _products(above):
        for scores, target in (product.operands[:2], product.operands[1::-1]):
            if runs_behind(target) or isinstance(target, Known):
                continue
            made = list(contents(scores))
            is_raw = bool(made) and all(content is Content.SCORES for content, _ in made)
            if is_raw and _has_areas(sums, scores, target):
                return made[0][1]
    return None


def _products(above: Value) -> Iterator[Operation]:
    """Yield the products of two tensors that are summed up in the count of an overlap."""
    for term in _terms(above):
        summed = operation_of(term)
        if summed is None or summed.name not in COUNTS or not summed.operands:
            continue
        product = operation_of(summed.operands[0])
        if product is not None and product.name == "mul" and len(product.operands) == 2:
            yield product


def _terms(value: Value, depth: int = 10) -> Iterator[Value]:
    """Yield what is added up in a number, without factors and bounds."""
    value, operation = _plain(value)
    if operation is None or depth == 0 or operation.name not in ("add", "sub", "mul"):
        yield value
        return
    for operand in operation.operands:
        if not isinstance(operand, Known):
            yield from _terms(operand, depth - 1)


def _has_areas(sums: list[Value], scores: Value, target: Value) -> bool:
    """Tell whether some sum goes over scores, some over targets, and all over either."""
    behind = [_summed(s) for s in sums]
    if any(b is None for b in behind):
        return False
    held = [{id(v) for v in b} for b in behind if b is not None]
    return (
        len(held) > 1
        and any(id(scores) in h for h in held)
        and any(id(target) in h for h in held)
        and any((id(scores) in h) is not (id(target) in h) or len(held) > 2 for h in held)
    )


def _summed(value: Value) -> list[Value] | None:
    """Return the tensors that a sum is made of; None where it is no sum."""
    operation = operation_of(value)
    if operation is None or operation.name not in COUNTS or not operation.operands:
        return None
    return list(origins(operation.operands[0], NEAR))


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
    axes = {_axis(s) for s in known}
    is_one = all(is_same(s.operands[0], diagonal.operands[0]) for s in known)
    return is_one and axes in ({0, 1}, {0, -1}, {-2, -1})


def lopsided_unions(story: Story) -> Iterator[ProgramEvent]:
    """Yield where the diagonal of a confusion matrix is divided by one of its sums, twice."""
    for event, above, below in quotients(story):
        diagonal = _diagonal(above)
        added = _plain(below)[1]
        if added is not None and added.name == "sub" and added.operands:
            added = _plain(added.operands[0])[1]
        if diagonal is None or added is None or added.name != "add":
            continue
        sums = [_plain(v)[1] for v in added.operands]
        known = [s for s in sums if s is not None and s.name == "sum" and _axis(s) is not None]
        is_one = all(is_same(s.operands[0], diagonal.operands[0]) for s in known)
        if len(known) == len(sums) == 2 and is_one and len({_axis(s) for s in known}) == 1:
            yield event


def _diagonal(value: Value) -> Operation | None:
    """Return the diagonal of a matrix that a count is, once or twice."""
    for factor in factors(value):
        operation = _plain(factor)[1]
        if operation is not None and operation.name in DIAGONALS:
            return operation
    return None


def _axis(summed: Operation) -> object:
    return constant(next(iter((*summed.operands[1:], *summed.settings.values())), None))


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
