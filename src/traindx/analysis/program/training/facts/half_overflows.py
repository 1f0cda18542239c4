"""Numbers that float16 does not hold: exponentials of bounded scores, constants of masks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Answer, Value
from traindx.analysis.program.training.facts.dtypes import is_autocast
from traindx.analysis.program.training.facts.score_bounds import bounds_of
from traindx.analysis.program.training.half_precision import is_half
from traindx.analysis.program.training.numbers import number_of
from traindx.analysis.program.training.operations import Operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

LARGEST = 65504.0  # of float16
FILLS = frozenset({"masked_fill", "full_like", "fill"})


@dataclass(frozen=True, slots=True, eq=False)
class HalfOverflow:
    """Where a number is made in float16 that it does not hold, and how large it is."""

    event: ProgramEvent
    number: float
    is_exponential: bool


def half_overflows(story: Story) -> Iterator[HalfOverflow]:
    """Yield the operations on float16 that go beyond its largest number."""
    for event in story.events:
        operation = operation_of(event.result) if event.act is EventForm.CALL else None
        if operation is None or not operation.operands or event.is_own:
            continue
        if operation.name == "exp" and is_autocast(event):
            continue  # autocast takes exponentials in float32
        number = _reached(operation)
        if number is None or not LARGEST < abs(number) < math.inf:
            continue
        if is_half(story, _tensor(operation)) is Answer.YES:
            yield HalfOverflow(event, number, operation.name == "exp")


def _tensor(operation: Operation) -> Value:
    """Return the tensor that a number goes into."""
    if operation.name != "where" or len(operation.operands) != 3:
        return operation.operands[0]
    first, second = operation.operands[1:]
    return second if number_of(first) is not None else first


def _reached(operation: Operation) -> float | None:
    """Return how large the result gets, where the source says it."""
    if operation.name == "exp":
        bounds = bounds_of(operation.operands[0])
        # beyond that a double overflows too, and no bound of scores is meant
        return math.exp(bounds[1]) if bounds is not None and bounds[1] < 700 else None
    if operation.name in FILLS:
        named = (operation.settings.get(name) for name in ("value", "fill_value"))
        given = next((v for v in named if v is not None), operation.operands[-1])
        return number_of(given)
    if operation.name == "where" and len(operation.operands) == 3:
        first, second = (number_of(v) for v in operation.operands[1:])
        return second if first is None else first
    return None
