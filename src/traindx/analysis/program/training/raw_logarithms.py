"""Cross-entropies written by hand whose probabilities are raw scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Value, constant, is_same
from traindx.analysis.program.training.contents import CAPS, Content, contents
from traindx.analysis.program.training.graphs import feeds_backward
from traindx.analysis.program.training.operations import Operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

SMALL = 0.01  # an epsilon is not larger


def raw_logarithms(story: Story) -> Iterator[tuple[ProgramEvent, Value]]:
    """Yield where log(p) and log(1 - p) of raw scores are in one loss, and what made the scores."""
    taken = [(loss, _scores(loss.operation)) for loss in story.operations("log")]
    logs = [(loss, scores) for loss, scores in taken if scores is not None]
    for loss, (scores, is_rest) in logs:
        is_pair = any(rest is not is_rest and is_same(scores, other) for _, (other, rest) in logs)
        made = [v for content, v in contents(scores) if content is Content.SCORES]
        result = loss.event.result
        if is_rest or not is_pair or not made or result is None:
            continue
        if len(made) == len(list(contents(scores))) and feeds_backward(story, result):
            yield loss.event, made[0]


def _scores(logarithm: Operation) -> tuple[Value, bool] | None:
    """Return what a logarithm is of, without guards, and whether it is of the rest to one."""
    if not logarithm.operands:
        return None
    value, operation = _unguarded(logarithm.operands[0])
    is_rest = operation is not None and operation.name == "sub" and len(operation.operands) == 2
    if operation is None or not is_rest:
        return value, False
    first, second = operation.operands
    return (_unguarded(second)[0], True) if constant(first) in (1, 1.0) else (value, False)


def _unguarded(value: Value) -> tuple[Value, Operation | None]:
    """Look through `p + 1e-8` and `p.clamp(eps, 1 - eps)`."""
    operation = operation_of(value)
    while operation is not None and operation.operands:
        rest = [constant(v) for v in operation.operands[1:]]
        is_shift = operation.name in ("add", "sub") and len(rest) == 1
        is_small = is_shift and isinstance(rest[0], (int, float)) and abs(rest[0]) < SMALL
        if operation.name not in CAPS and not is_small:
            break
        value = operation.operands[0]
        operation = operation_of(value)
    return value, operation
