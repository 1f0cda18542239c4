"""Learning rates that are zero from the beginning, or after a few steps."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Result
from traindx.analysis.program.training.phases import Loop, Unit
from traindx.analysis.program.training.program import Story
from traindx.analysis.program.training.schedules import (
    Schedule,
    count_of,
    pace_of,
    schedules_of,
)
from traindx.analysis.program.training.settings import is_zero
from traindx.analysis.program.training.step_sizes import (
    ParameterGroup,
    groups_of,
    stays_zero,
)

EARLY = 50  # steps; no run is meant to be over by then


def zero_rates(story: Story) -> Iterator[tuple[str, ProgramEvent | Result]]:
    """Yield the optimizers and training arguments whose learning rate is zero and stays so."""
    for event in story.events:
        name = event.name.rsplit(".", 1)[-1]
        is_arguments = name.endswith("TrainingArguments") and event.act is EventForm.CALL
        if is_arguments and is_zero(story, event.argument("learning_rate")):
            yield name, event
    groups: dict[Result, list[ParameterGroup]] = {}
    for group in groups_of(story):
        groups.setdefault(group.optimizer, []).append(group)
    for optimizer, own in groups.items():
        are_zero = all(is_zero(story, group.given("lr")) for group in own)
        if are_zero and optimizer.site is not None and stays_zero(story, optimizer):
            yield own[0].kind, optimizer


def early_ends(story: Story) -> Iterator[tuple[Schedule, int]]:
    """Yield the schedules that set the rate to zero long before their loop ends, and when."""
    for schedule in schedules_of(story):
        end = schedule.ends_at
        is_never = end == 0 and bool(schedule.updates) and bool(schedule.steps)
        if end is not None and (is_never or (end and _is_over_early(schedule, end))):
            yield schedule, end


def _is_over_early(schedule: Schedule, end: int) -> bool:
    """Tell whether a schedule is at its end long before the loop that steps it."""
    if end > EARLY or not schedule.steps or not schedule.updates:
        return False
    event = schedule.steps[0].event
    pace = pace_of(schedule.story, event)
    turns = count_of(Loop(schedule.story, event.loops[-1])) if event.loops else None
    if turns is not None and len(event.loops) == 1:
        return turns > 2 * end and pace is not Unit.EPOCHS
    return pace is Unit.BATCHES and len(event.loops) > 1
