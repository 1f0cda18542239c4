"""Steps of a learning-rate schedule that come too often, too seldom or in vain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.metric_directions import Metric
from traindx.analysis.program.training.phases import Loop, Unit
from traindx.analysis.program.training.program import Story
from traindx.analysis.program.training.schedules import (
    Schedule,
    count_of,
    pace_of,
    rounds_of,
    schedules_of,
)

FEW_BATCHES = 300  # fewer than one epoch of most data; no schedule is meant to end there
SPARE = 4  # times as many epochs are left as the schedule takes to its end
SMALL = 1e-6  # of the first rate: nothing is learned with that


@dataclass(frozen=True, slots=True)
class Misstep:
    """A step of a schedule that does not set the rate that was meant, and why."""

    schedule: Schedule
    step: Deed
    says: str


def missteps(story: Story) -> Iterator[Misstep]:
    """Yield the first wrong step of each schedule that is made in sight."""
    for schedule in schedules_of(story):
        fault = None if schedule.made.site is None else _in_vain(schedule) or _off_pace(schedule)
        if fault is not None:
            yield Misstep(schedule, *fault)


def _in_vain(schedule: Schedule) -> tuple[Deed, str] | None:
    """A step of a schedule that watches the wrong metric, or sets a rate nobody uses."""
    watched, kind = schedule.watched, schedule.kind
    if watched is not None and schedule.wants not in (None, watched[1]):
        wanted = "falls" if schedule.wants is Metric.LOSS else "rises"
        step, metric = watched
        return step, f"{kind} waits for a metric that {wanted} but gets {metric.value}"
    if schedule.replaced is not None:
        return schedule.steps[0], f"{kind} sets the rate of an optimizer that is never stepped"
    return None


def _off_pace(schedule: Schedule) -> tuple[Deed, str] | None:
    """A step that comes too often, too seldom, too early, or of a schedule that begins again."""
    kind = schedule.kind
    if not schedule.updates:
        return None
    if schedule.made_anew is not None:
        return schedule.made_anew, f"{kind} is created again in every epoch and starts over"
    if schedule.unwaited is not None:
        return schedule.unwaited, f"{kind} counts updates and is stepped for every batch"
    for step in schedule.steps:
        why = _wrong_pace(schedule, step)
        if why:
            return step, why
    return _twice(schedule) or _ahead(schedule)


def _wrong_pace(schedule: Schedule, step: Deed) -> str:
    """Why a step comes too often, or too seldom."""
    update = schedule.updates[0]
    if step.event.guards and not _is_alike(step, update):
        return ""
    pace, kind = pace_of(schedule.story, step.event), schedule.kind
    around = rounds_of(step.event)
    is_inner = len(around) > 1
    if pace is Unit.BATCHES and is_inner:
        if schedule.unit is Unit.EPOCHS:
            return f"{kind} counts epochs and is stepped for every batch"
        steps = schedule.steps_to(SMALL)
        if steps < FEW_BATCHES:
            return f"stepped for every batch, {kind} falls a millionfold in {steps:.0f} batches"
    if is_inner and schedule.is_over_after_an_epoch and _goes_over_again(schedule, step):
        return f"{kind} is as long as one epoch and is stepped in every one"
    if pace is Unit.STEPS:
        steps = schedule.steps_to(SMALL)
        turns = count_of(Loop(schedule.story, around[-1]))
        if turns is not None and turns > 2 * steps:
            return f"{kind} falls a millionfold in {steps:.0f} of {turns} steps"
    turns = count_of(Loop(schedule.story, around[-1])) if pace is Unit.EPOCHS else None
    if turns is not None and turns > SPARE * schedule.steps_to(SMALL):
        return f"{kind} falls a millionfold in {schedule.steps_to(SMALL):.0f} of {turns} epochs"
    is_outer = len(around) < len(rounds_of(update.event))
    if pace is Unit.EPOCHS and is_outer and _counts_batches(schedule):
        return f"{kind} counts batches and is stepped once per epoch"
    return ""


def _goes_over_again(schedule: Schedule, step: Deed) -> bool:
    """Tell whether a loop over epochs, of more than one, is around a step and not the schedule."""
    made = schedule.story.giver_of(schedule.made)
    around = [loop for loop in rounds_of(step.event)[:-1] if made and loop not in made.loops]
    epochs = [Loop(schedule.story, loop) for loop in around]
    return any(e.unit is Unit.EPOCHS and count_of(e) != 1 for e in epochs)


def _counts_batches(schedule: Schedule) -> bool:
    is_default = schedule.kind == "CyclicLR" and not schedule.lengths  # 2000 steps
    return is_default or schedule.unit is Unit.BATCHES


def _is_alike(step: Deed, update: Deed) -> bool:
    """Tell whether schedule and optimizer are stepped under the same conditions."""
    own = [(g.site.node, g.holds) for g in step.event.guards]
    return own == [(g.site.node, g.holds) for g in update.event.guards]


def _twice(schedule: Schedule) -> tuple[Deed, str] | None:
    plain = [s for s in schedule.steps if not s.event.guards]
    paces = {pace_of(schedule.story, s.event) for s in plain}
    if len(plain) == 2 and paces == {Unit.BATCHES, Unit.EPOCHS}:
        what = f"{schedule.kind} is stepped for every batch and once more for every epoch"
        return plain[0], what
    return None


def _ahead(schedule: Schedule) -> tuple[Deed, str] | None:
    """A step that comes before the optimizer's in every turn skips the first rate."""
    step = next(iter(schedule.steps), None)
    update = schedule.updates[0]
    if step is None or step.event.order > update.event.order or not step.event.loops:
        return None
    around = [x.site.node for x in rounds_of(update.event)]
    own = [x.site.node for x in rounds_of(step.event)]
    if own != around[: len(own)] or not _is_alike(step, update):
        return None
    return step, f"{schedule.kind} is stepped before its optimizer, so the first rate is skipped"
