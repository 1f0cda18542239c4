"""Steps that climb a loss: what is descended from is its negative."""

from __future__ import annotations

import re
from dataclasses import dataclass

from traindx.analysis.program.execution.values import (
    Answer,
    Known,
    Part,
    Result,
    Unknown,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.claims import replace, source_text, use_of
from traindx.analysis.program.training.gradients import runs_reached
from traindx.analysis.program.training.kinds import Kind, names_of
from traindx.analysis.program.training.operations import LOSSES, operation_of
from traindx.analysis.program.training.ownership import holders, owns, parameters_given
from traindx.analysis.program.training.program import Story

# who climbs a loss to make a model forget says so: no act of the program shows it
ON_PURPOSE = re.compile(
    r"adversar|attack|ascent|unlearn|forget|revers|perturb|poison|domain_confus|grl"
)


@dataclass(frozen=True, eq=False)
class Ascent:
    """A backward pass from the negative of a loss."""

    backward: Deed
    whole: Result
    loss: Value

    def patch(self) -> str | None:
        """Put the loss in the place of its negative, by its expression or by its name."""
        text = "" if self.loss.site is None else source_text(self.loss)
        if not text or text not in source_text(self.whole):
            use = use_of(self.whole, self.loss)
            text = "" if use is None else source_text(use)
        return replace(self.whole, text) if text else None


def ascent(story: Story) -> Ascent | None:
    """Return the first climb of the one optimizer of a story that is not meant."""
    steps = [d for d in story.does(Do.STEP) if not d.event.by_framework]
    optimizers = {id(d.subject): d.subject for d in steps or story.does(Do.STEP)[:1]}
    optimizer = next(iter(optimizers.values()), None)
    if len(optimizers) != 1:
        return None
    if isinstance(optimizer, Result) and "maximize" in optimizer.kwargs:
        return None
    for backward in story.does(Do.BACKWARD):
        minus = None if backward.subject is None else _minus(backward.subject)
        if minus is not None and not _is_on_purpose(story, backward, optimizer):
            return Ascent(backward, *minus)
    return None


def _minus(value: Value) -> tuple[Result, Value] | None:
    """The one minus between a loss of torch and its descent; none where the way is not clear."""
    found: list[tuple[Result, Value]] = []
    for _ in range(12):
        operation = operation_of(value)
        if operation is None or not isinstance(value, Result):
            return None
        if operation.name in LOSSES:
            return found[0] if len(found) == 1 and found[0][0].site is not None else None
        negated = _negated(operation.name, operation.operands)
        if negated is not None:
            found.append((value, negated))
        below = negated or _scaled(operation.name, operation.operands)
        if below is None:
            return None
        value = below
    return None


def _negated(name: str, operands: tuple[Value, ...]) -> Value | None:
    """What a value is the negative of: `-x`, `-1 * x`, `0 - x`, `x.neg()`."""
    if name == "neg" and operands:
        return operands[0]
    if len(operands) != 2:
        return None
    first, second = operands
    if name == "sub" and constant(first) in (0, 0.0) and isinstance(first, Known):
        return second
    if name in ("mul", "div") and constant(second) in (-1, -1.0):
        return first
    return second if name == "mul" and constant(first) in (-1, -1.0) else None


def _scaled(name: str, operands: tuple[Value, ...]) -> Value | None:
    """What is averaged, scaled by a scaler, divided by a count or times a positive constant."""
    if name in ("mean", "sum") and operands:
        return operands[0]
    if name == "scale" and len(operands) == 2:
        return operands[1]
    if name not in ("mul", "div") or len(operands) != 2:
        return None
    for value, factor in (operands, operands[::-1] if name == "mul" else operands):
        number = constant(factor)
        if isinstance(number, (int, float)) and number > 0:
            return value
    is_count = name == "div" and isinstance(operands[1], (Unknown, Part))
    return operands[0] if is_count else None


def _is_on_purpose(story: Story, backward: Deed, optimizer: Value | None) -> bool:
    """Tell whether the climb is meant, or the gradient goes to something else than the weights."""
    loss = backward.subject
    if loss is None or _speaks_of_it(story, backward, loss):
        return True
    given = None if optimizer is None else parameters_given(optimizer)
    trained = [model for model, _ in holders(given)]
    if isinstance(optimizer, Result) and not trained:
        return True  # of an input, or of what is out of sight
    layers = [r.receiver for r in runs_reached(loss) if r.receiver is not None]
    if optimizer is not None and any(owns(optimizer, x) is Answer.NO for x in layers):
        return True
    return any(_judges(story, v, trained) for v in origins(loss, 400))


def _judges(story: Story, value: Value, trained: list[Value]) -> bool:
    """Tell whether a value is what another model makes of the output of a trained one."""
    if not isinstance(value, Result) or not isinstance(value.receiver, Unknown):
        return False
    if any(value.receiver is t for t in trained) or story.kind_of(value.receiver).kind is Kind.LOSS:
        return False
    below = [v for a in value.args for v in origins(a, 200) if isinstance(v, Result)]
    return any(v.receiver is t for v in below for t in trained)


def _speaks_of_it(story: Story, backward: Deed, loss: Value) -> bool:
    function = backward.event.function
    words = [str(getattr(function, "name", ""))]
    words += [name for value in origins(loss, 400) for name in names_of(value)]
    words += [event.name for event in story.events if event.is_own]
    return any(ON_PURPOSE.search(word.lower()) for word in words)
