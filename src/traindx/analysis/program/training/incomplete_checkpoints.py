"""Checkpoints to go on from that lack the optimizer, its moments, or the schedule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Answer, Result, Value, depends_on
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.checkpoints import Saved, loads, saves, states_taken
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.restoration import has_momentum
from traindx.analysis.program.training.schedules import Schedule, schedules_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

TO_GO_ON = frozenset({Kind.SCHEDULER, Kind.SCALER})


def without_optimizer(program: Program, story: Story) -> Iterator[Saved]:
    """Yield checkpoints with model and schedule, where no state of an optimizer is ever taken."""
    if not states_taken(program) & {Kind.OPTIMIZER, Kind.UNKNOWN}:
        yield from (s for s in saves(story) if _leaves_out_optimizer(story, s))


def without_moments(story: Story) -> Iterator[Saved]:
    """Yield checkpoints to go on from with an optimizer's options, and no moments."""
    made = [o for o in story.made(Kind.OPTIMIZER) if has_momentum(o)]
    for save in saves(story):
        is_known = Kind.MODEL in save.kinds and save.is_whole
        if is_known and any(save.has_groups_only(o) for o in made):
            yield save


def restarted_schedules(program: Program, story: Story) -> Iterator[Schedule]:
    """Yield schedules that start at the first step again when all else is resumed."""
    if states_taken(program) & {Kind.SCHEDULER, Kind.UNKNOWN}:
        return
    for loaded in loads(story):
        subjects = [d.subject for d in loaded.restored]
        if not any(story.is_kind(s, Kind.OPTIMIZER) for s in subjects) or loaded.is_open:
            continue
        for schedule in schedules_of(story):
            is_own = any(s is schedule.optimizer for s in subjects)
            if is_own and _is_stepped_from_zero(story, schedule):
                yield schedule


def _leaves_out_optimizer(story: Story, save: Saved) -> bool:
    optimizers = story.made(Kind.OPTIMIZER)
    if Kind.MODEL not in save.kinds or not save.kinds & TO_GO_ON or not save.is_whole:
        return False
    if any(save.holds(o) and not _is_through_schedule(save, o) for o in optimizers):
        return False
    return bool(optimizers) and all(has_momentum(o) for o in optimizers)


def _is_through_schedule(save: Saved, optimizer: Value) -> bool:
    """Tell whether a checkpoint only has an optimizer because a schedule was made for it."""
    content = save.deed.subject
    values = content.fields.values() if content is not None else ()
    states = [v for v in values if isinstance(v, Result) and v.maker == ".state_dict"]
    others = [v for v in values if not any(v is s for s in states)]
    return not any(depends_on(v, optimizer) for v in others)


def _is_stepped_from_zero(story: Story, schedule: Schedule) -> bool:
    """Tell whether nothing tells a schedule where it is."""
    if "last_epoch" in schedule.made.kwargs or not schedule.steps or not schedule.updates:
        return False
    if any(d.subject is schedule.made for d in story.does(Do.LOAD_STATE)):
        return False
    is_ahead = schedule.steps[0].event.order < schedule.updates[0].event.order
    return not is_ahead and story.escapes(schedule.made) is Answer.NO
