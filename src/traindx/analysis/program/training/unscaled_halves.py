"""Losses in float16 whose gradients nothing scales."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Result
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.losses import losses
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.precision import autocast_type, half_cast
from traindx.analysis.program.training.scaling import knows_scaling
from traindx.analysis.program.training.updates import Update, is_one_turn, updates

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story


@dataclass(frozen=True, eq=False)
class UnscaledHalf:
    """A backward pass from a loss in float16: by a cast, or by the autocast around it."""

    backward: Deed
    cast: Result | None
    context: Result | None


def unscaled_halves(story: Story) -> Iterator[UnscaledHalf]:
    """Yield the backward passes in float16 that no gradient scaler has a part in."""
    for update in updates(story):
        if update.step.through is not None or update.backward.through is not None:
            continue
        cast = half_cast(update.backward.subject)
        context = None if knows_scaling(story) else _float16_context(update)
        if cast is not None or context is not None:
            yield UnscaledHalf(update.backward, cast, context)


def _float16_context(update: Update) -> Result | None:
    """The autocast in float16 around the forward pass or the loss of a backward pass."""
    story, backward = update.story, update.backward.event
    operation = operation_of(update.backward.subject)
    if operation is not None and operation.name == "mul":
        return None  # a scale written by hand
    computed = [*(d.event for d in story.does(Do.FORWARD)), *losses(story, story.events)]
    for event in computed:
        if event.order < backward.order and is_one_turn(event, backward):
            for context in event.contexts:
                if isinstance(context, Result) and autocast_type(context) == "float16":
                    return context
    return None
