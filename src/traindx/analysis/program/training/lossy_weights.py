"""Weights in half precision that an optimizer updates as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Result, Value
from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.gradient_bounds import step_size
from traindx.analysis.program.training.ownership import holders, parameters_given
from traindx.analysis.program.training.precision import Conversion, conversion_of
from traindx.analysis.program.training.settings import constants_of
from traindx.analysis.program.training.updates import Update, updates

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# Adam moves a weight by about the learning rate; bfloat16 has eight bits, so that a step of 1e-4 is
# rounded away in every weight above 0.03, which is most of them in layers of usual width
LOST_RATE = 1e-4
# what SGD makes of a gradient, momentum included: one of 0.01 then moves a weight by 3e-4, which
# bfloat16 rounds away in every weight above 0.1
LOST_GAIN = 0.03


@dataclass(frozen=True, eq=False)
class LossyWeights:
    """A conversion to half precision, and the step that updates the converted weights."""

    conversion: Conversion
    step: Deed


def lossy_weights(story: Story) -> Iterator[LossyWeights]:
    """Yield the conversions after which an optimizer's updates are lost to rounding."""
    for update in updates(story):
        for model in _models(update):
            found = conversion_of(story, model, update.step.event)
            if found is not None and not found.is_mixed and _is_lossy(story, found, update):
                yield LossyWeights(found, update.step)


def _is_lossy(story: Story, found: Conversion, update: Update) -> bool:
    """Tell whether the updates are smaller than what the weights can show."""
    if found.dtype == "float16":
        return True
    optimizer = update.optimizer
    if found.dtype != "bfloat16" or not isinstance(optimizer, Result):
        return False
    size = step_size(story, optimizer)
    if size is not None and size.gain is not None:
        return size.gain <= LOST_GAIN
    rate = optimizer.kwargs.get("lr") or next(iter(optimizer.args[1:2]), None)
    rates = [r for r in constants_of(story, rate) if isinstance(r, float)]
    return "Adam" in optimizer.maker and bool(rates) and max(rates) <= LOST_RATE


def _models(update: Update) -> list[Value]:
    """The models whose parameters an optimizer of torch holds, in whatever groups."""
    optimizer = update.optimizer
    if not isinstance(optimizer, Result) or not optimizer.maker.startswith("torch.optim."):
        return []
    return [model for model, _ in holders(parameters_given(optimizer))]
