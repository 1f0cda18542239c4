"""Learning rates that a program lowers by itself, and how soon nothing is left of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Part, Value, constant
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.missteps import FEW_BATCHES, SMALL
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.phases import Loop, Unit
from traindx.analysis.program.training.program import Story
from traindx.analysis.program.training.settings import one_number
from traindx.analysis.program.training.step_sizes import writes_settings


@dataclass(frozen=True, slots=True, eq=False)
class FallingRate:
    """A rate that is multiplied by a number below one after every batch, and the step beside it."""

    event: ProgramEvent
    step: Deed
    batches: float  # until it has fallen a millionfold


def falling_rates(story: Story) -> Iterator[FallingRate]:
    """Yield where a rate is lowered so often that it is gone within the first epoch."""
    writes = [e for e in story.events if e.act is EventForm.STORE and e.name == "[]"
              and len(e.args) > 1 and constant(e.args[1]) == "lr" and not e.guards]  # fmt: skip
    for event in writes:
        factor = _factor(story, event.args[0])
        batches = math.inf if factor is None else math.log(SMALL) / math.log(factor)
        for step in story.does(Do.STEP) if batches < FEW_BATCHES else ():
            loops = step.event.loops
            is_beside = len(loops) > 1 and event.loops[: len(loops)] == loops
            is_own = step.subject is not None and writes_settings(event, step.subject)
            if is_beside and is_own and Loop(story, loops[-1]).unit is Unit.BATCHES:
                yield FallingRate(event, step, batches)


def _factor(story: Story, value: Value) -> float | None:
    """The number below one that a rate is multiplied by; None where it is anything else."""
    operation = operation_of(value)
    if operation is None or operation.name not in ("mul", "div") or len(operation.operands) != 2:
        return None
    for rate, other in (operation.operands, operation.operands[::-1]):
        number = one_number(story, other)
        if number and isinstance(rate, Part) and rate.key == "lr":
            found = number if operation.name == "mul" else 1 / number
            return found if 0 < found < 1 else None
    return None
