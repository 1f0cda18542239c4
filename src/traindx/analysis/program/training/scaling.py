"""Gradient scalers of mixed precision: which one scales a loss, and whether it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Answer,
    Known,
    Result,
    Unknown,
    Value,
    constant,
    options_of,
)
from traindx.analysis.program.training.acts import Deed
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.settings import constants_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

MAKERS = ("GradScaler", "ShardedGradScaler")


def scaler_of(loss: Value | None) -> Value | None:
    """Return what scaled a value: `scaler` of `scaler.scale(loss)`."""
    return loss.receiver if isinstance(loss, Result) and loss.maker == ".scale" else None


def unscaled(loss: Value) -> Value:
    """Return a loss as it was before a scaler scaled it."""
    if isinstance(loss, Result) and loss.maker == ".scale" and loss.args:
        return loss.args[0]
    return loss


def is_gradient_scaler(story: Story, value: Value | None) -> bool:
    """Tell whether a value is torch's gradient scaler, switched on, or one from out of sight."""
    if value is None:
        return False
    found = [o for o in options_of(value) if not isinstance(o, Known)]
    made = [o for o in found if isinstance(o, Result)]
    if any(constant(o.kwargs.get("enabled")) is False for o in made):
        return False
    if made:
        return any(_maker(o) in MAKERS for o in made)
    return bool(found) and story.kind_of(value).kind is Kind.SCALER


def _maker(made: Result) -> str:
    """The name of what makes a value; also of a class that nothing in sight defines."""
    name = made.receiver.name if isinstance(made.receiver, Unknown) else made.maker
    return name.rsplit(".", 1)[-1]


def is_scaled(story: Story, backward: Deed) -> bool:
    """Tell whether a backward pass starts from a loss that a gradient scaler scaled."""
    return is_gradient_scaler(story, scaler_of(backward.subject))


def scales_nothing(story: Story, scaler: Value | None) -> bool:
    """Tell whether a scaler of torch's, made in sight, is never asked to scale anything."""
    if not isinstance(scaler, Result) or not is_gradient_scaler(story, scaler):
        return False
    asked = [e.receiver for e in story.events if e.name == ".scale" and e.receiver is not None]
    is_asked = any(o is scaler for receiver in asked for o in options_of(receiver))
    return not is_asked and story.escapes(scaler) is Answer.NO


def is_scaled_by_engine(story: Story, backward: Deed) -> bool:
    """Tell whether a framework scales the loss of a backward pass: it may run in float16."""
    engine = backward.through
    if not isinstance(engine, Result) or story.kind_of(engine).kind is not Kind.ENGINE:
        return False
    given = engine.kwargs.get("mixed_precision") or engine.kwargs.get("precision")
    return any(text in ("fp16", "16-mixed") for text in constants_of(story, given))


def knows_scaling(story: Story) -> bool:
    """Tell whether a program has a gradient scaler, or a framework that may bring one."""
    for event in story.events:
        if event.name.split(".", 1)[0] in ("apex", "deepspeed", "accelerate", "lightning"):
            return True
        values = (event.receiver, event.result, *event.args, *event.kwargs.values())
        if any(story.kind_of(v).kind in (Kind.SCALER, Kind.ENGINE) for v in values):
            return True
    return False
