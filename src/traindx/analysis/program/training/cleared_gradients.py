"""Gradients that are cleared before an optimizer could apply them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.values import Answer, Result, Value, constant
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.feeds import feeds
from traindx.analysis.program.training.phases import Loop, Unit
from traindx.analysis.program.training.program import Story
from traindx.analysis.program.training.updates import (
    Repetition,
    Update,
    UpdateWindow,
    clears,
    count_of_turns,
    happens_with,
    has_closure,
    is_handed_on,
    period_of,
    repetitions,
    updates,
    writes_gradients,
)


def cleared_updates(story: Story) -> Iterator[tuple[Update, Deed]]:
    """Yield the updates whose gradients are cleared before the step, and what clears them."""
    for update in updates(story):
        zero = _cleared_before(update)
        if zero is not None:
            yield update, zero


def _cleared_before(update: Update) -> Deed | None:
    """What clears the gradients of a backward pass before they are applied."""
    optimizer, story, step = update.optimizer, update.story, update.step
    if optimizer is None or has_closure(step):
        return None
    if feeds(story, update.backward, optimizer) is Answer.NO:
        return None  # its gradients are of other parameters
    for zero in reversed(update.between.does(Do.ZERO_GRAD)):
        if clears(zero, optimizer, story) is not Answer.YES:
            continue
        if not happens_with(zero.event, step.event):
            continue
        after = UpdateWindow(story, zero.event, step.event).events
        models = [d.subject for d in story.does(Do.FORWARD)]
        if writes_gradients(story, after) or is_handed_on(story, after, optimizer, *models):
            return None
        return zero
    return None


@dataclass(frozen=True, slots=True, eq=False)
class LateStep:
    """A step after a loop over batches that clears the gradients of each before the next."""

    backward: Deed
    zero: Deed
    step: Deed


def late_steps(story: Story) -> Iterator[LateStep]:
    """Yield the steps that find the gradients of the last batch of a loop only."""
    for repeated in repetitions(story):
        between, second = repeated.between, repeated.second
        if between.does(*LEARNS) or Loop(story, repeated.loop).unit is not Unit.BATCHES:
            continue
        step = _next_step(story, repeated)
        optimizer = None if step is None else step.subject
        if step is None or optimizer is None or has_closure(step):
            continue
        if feeds(story, second, optimizer) is Answer.NO or is_handed_on(
            story, between.events, optimizer
        ):
            continue
        for zero in between.does(Do.ZERO_GRAD):
            is_sure = happens_with(zero.event, second.event)
            if is_sure and clears(zero, optimizer, story) is Answer.YES:
                yield LateStep(second, zero, step)
                break


LEARNS = (Do.STEP, Do.MANUAL_UPDATE, Do.GRAD)


def _next_step(story: Story, repeated: Repetition) -> Deed | None:
    """The step that follows a loop, where no other gradients are computed before it."""
    around = repeated.second.event.turns
    outer = around[: [t.loop for t in around].index(repeated.loop)]
    later = (d for d in story.does(Do.BACKWARD, Do.ZERO_GRAD, *LEARNS)
             if d.event.order > repeated.second.event.order)  # fmt: skip
    found = next(later, None)
    is_after = found is not None and found.event.turns == outer and bool(outer)
    return found if is_after and found is not None and found.do is Do.STEP else None


@dataclass(frozen=True, slots=True, eq=False)
class ShortAccumulation:
    """A step every so many batches, while gradients are cleared at each of them."""

    backward: Deed
    zero: Deed
    step: Deed
    period: Value
    turns: Result | None


def short_accumulations(story: Story) -> Iterator[ShortAccumulation]:
    """Yield the steps that wait for several batches and find the gradients of the last only."""
    for repeated in repetitions(story):
        between = repeated.between
        steps = [d for d in between.does(Do.STEP) if d.subject is not None]
        if len(steps) != 1 or writes_gradients(story, between.events):
            continue
        step, second = steps[0], repeated.second.event
        period = period_of(story, step.event)
        if period is None or period_of(story, second) or constant(period) == 1:
            continue
        for zero in between.does(Do.ZERO_GRAD):
            if happens_with(zero.event, second) and zero.subject is step.subject:
                turns = count_of_turns(story, step.event)
                yield ShortAccumulation(repeated.first, zero, step, period, turns)
                break
