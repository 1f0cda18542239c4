"""Gradients that are summed over batches while the loss is not divided by their number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.values import Known, Result, Site, Value, constant
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import (
    argument_of,
)
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.losses import is_changed, is_mean
from traindx.analysis.program.training.program import Story
from traindx.analysis.program.training.scaling import unscaled
from traindx.analysis.program.training.updates import (
    Repetition,
    UpdateWindow,
    count_of_turns,
    group_step,
    happens_with,
    is_handed_on,
    period_of,
    repetitions,
    writes_gradients,
)


@dataclass(frozen=True, slots=True, eq=False)
class UnscaledAccumulation:
    """A backward pass at every batch on the whole loss, and the step after several of them."""

    backward: Deed
    step: Deed
    count: Site | None
    is_rescaled: bool  # by the optimizer: Adam divides by the size of the gradients


def unscaled_accumulations(story: Story) -> Iterator[UnscaledAccumulation]:
    """Yield where gradients of several batches add up and nothing makes up for their number."""
    for repeated in repetitions(story):
        step = _periodic_step(repeated) or group_step(repeated)
        if step is None or not _is_whole_loss(repeated) or _is_reckoned_with(repeated, step):
            continue
        turns = count_of_turns(story, step.event)
        count = None if turns is None else argument_of(turns, 1)
        is_rescaled = not _is_plain(step) and not _is_clipped(story, step)
        yield UnscaledAccumulation(repeated.second, step, count, is_rescaled)


def _is_plain(step: Deed) -> bool:
    return isinstance(step.subject, Result) and step.subject.maker.endswith(".SGD")


def _is_clipped(story: Story, step: Deed) -> bool:
    """Tell whether the sum of the gradients is clipped before a step."""
    clips = (c for c in story.does(Do.CLIP) if c.event.loops == step.event.loops)
    return any(happens_with(c.event, step.event) for c in clips)


def _periodic_step(repeated: Repetition) -> Deed | None:
    """A step that runs every n batches, and clears only then."""
    between, story = repeated.between, repeated.story
    steps, zeros = between.does(Do.STEP), between.does(Do.ZERO_GRAD)
    if not steps or not zeros or period_of(story, repeated.second.event) is not None:
        return None
    periods = [period_of(story, s.event) for s in steps]
    if any(period is None or constant(period) == 1 for period in periods):
        return None
    return steps[0] if all(happens_with(steps[0].event, z.event) for z in zeros) else None


def _is_whole_loss(repeated: Repetition) -> bool:
    """Tell whether backward starts from the mean over one batch, at a gradient of 1."""
    backward, story = repeated.second, repeated.story
    loss = None if backward.subject is None else unscaled(backward.subject)
    if loss is None or backward.through is not None or not is_mean(loss):
        return False
    event = backward.event
    is_weighted = any(a is not backward.subject for a in event.args) or "gradient" in event.kwargs
    accumulates = any(isinstance(c, Result) and c.maker == ".accumulate" for c in event.contexts)
    return not is_weighted and not accumulates and not is_changed(loss, story.events)


def _is_reckoned_with(repeated: Repetition, step: Deed) -> bool:
    """Tell whether gradients or the learning rate may make up for the sum."""
    story = repeated.story
    until = UpdateWindow(story, repeated.second.event, step.event)
    events = (*repeated.between.events, *until.events)
    if repeated.between.does(Do.GRAD, Do.MANUAL_UPDATE) or writes_gradients(story, events):
        return True
    if story.made(Kind.ENGINE) or is_handed_on(story, events, period_of(story, step.event)):
        return True
    return _is_rate_computed(step.subject)


def _is_rate_computed(optimizer: Value | None) -> bool:
    if not isinstance(optimizer, Result):
        return False
    rate = optimizer.kwargs.get("lr") or next(iter(optimizer.args[1:2]), None)
    is_product = isinstance(rate, Result) and rate.maker.startswith("operator.")
    return is_product or (isinstance(rate, Known) and bool(rate.operands))
