"""Numbers that float16 does not hold: exponentials of bounded scores, constants of masks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Value
from traindx.analysis.program.training.facts.dtypes import is_autocast
from traindx.analysis.program.training.facts.score_bounds import bounds_of
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
        if operation is None or not operation.operands or event.is_own or is_autocast(event):
            continue
        if not _is_half(story, operation.operands[0]):
            continue
        number = _reached(operation)
        if number is not None and LARGEST < abs(number) < math.inf:
            yield HalfOverflow(event, number, operation.name == "exp")


def _is_half(story: Story, value: Value) -> bool:
    element = story.dtypes.of(value)
    return element is not None and element.dtype == "float16" and element.holder == "tensor"


def _reached(operation: Operation) -> float | None:
    """Return how large the result gets, where the source says it."""
    if operation.name == "exp":
        bounds = bounds_of(operation.operands[0])
        # beyond that a double overflows too, and no bound of scores is meant
        return math.exp(bounds[1]) if bounds is not None and bounds[1] < 700 else None
    if operation.name in FILLS:
        return number_of(operation.operands[-1])
    return None
