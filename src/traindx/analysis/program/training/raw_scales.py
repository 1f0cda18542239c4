"""Inputs and targets in raw units, far from the scale that initial weights are made for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Answer, Part, Result, Value, constant
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import data_chain
from traindx.analysis.program.training.facts.random_spreads import Spread
from traindx.analysis.program.training.facts.spreads import Spreads
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

OF_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
FIRST_LAYERS = ("linear", "conv1d", "conv2d", "lstm", "gru", "rnn")
# of a column; initial weights are made for about one
RAW_INPUT = 100.0
# how many times wider one column spreads than another, that the other is as good as constant
UNEQUAL = 1000.0
RAW_TARGET = 1000.0  # what an output layer has to grow to before it learns anything else


@dataclass(frozen=True, eq=False)
class RawInput:
    """A first layer that is given columns in raw units, or of very unequal spread."""

    layer: ProgramEvent
    data: Value  # what it is given, where the program makes it
    widest: Spread
    narrowest: Spread | None  # where the spreads are unequal


def raw_inputs(story: Story) -> Iterator[RawInput]:
    """Yield the layers in training whose input is raw, each place once."""
    spreads, seen = story.recall(Spreads), set()
    for layer in story.operations(*FIRST_LAYERS):
        event = layer.event
        is_trained = event.loops and event.gradients is not Answer.NO
        given = layer.operation.operands[0] if layer.operation.operands else None
        if not is_trained or given is None or event.node in seen:
            continue
        known = [c for c in spreads.of(given) or () if c is not None]
        found = _widest(known)
        if found is not None and not _is_normalised(story, event.result):
            seen.add(event.node)
            yield RawInput(event, _made(story, given), *found)


def _widest(columns: list[Spread]) -> tuple[Spread, Spread | None] | None:
    """The column that stands out, and the one that is lost beside it."""
    if not columns:
        return None
    widest = max(columns, key=lambda c: c.std)
    varying = [c for c in columns if c.std > 0]
    narrowest = min(varying, key=lambda c: c.std, default=widest)
    largest = max(columns, key=lambda c: c.size)
    if widest.std >= UNEQUAL * narrowest.std > 0:
        return widest, narrowest
    return (largest, None) if largest.size >= RAW_INPUT and largest.std > 0 else None


def _is_normalised(story: Story, output: Value | None) -> bool:
    """Tell whether what a layer puts out is normalised next."""
    users = [] if output is None else story.made_from(output)
    made = (operation_of(v) for v in users)
    return any(o is not None and o.name.endswith("norm") for o in made)


def _made(story: Story, value: Value) -> Value:
    """What data are cut out of, at the last place that is in sight."""
    chain = [v for v in data_chain(story, value) if v.site is not None]
    return chain[-1] if chain else value


@dataclass(frozen=True, eq=False)
class RawTarget:
    """A loss of numbers whose target is in the thousands, and whose output starts at about zero."""

    loss: ProgramEvent
    data: Value
    spread: Spread


def raw_targets(story: Story) -> Iterator[RawTarget]:
    """Yield the losses in training whose targets are raw, each place once."""
    spreads, seen = story.recall(Spreads), set()
    for loss in story.operations(*OF_NUMBERS):
        event, target = loss.event, loss.operation.argument("target")
        is_trained = event.loops and event.gradients is not Answer.NO
        known = spreads.one(target) if is_trained and event.node not in seen else None
        if known is None or known.size < RAW_TARGET or target is None:
            continue
        output = loss.operation.argument("input")
        if _is_plain_output(output) and not _sets_bias(story):
            seen.add(event.node)
            yield RawTarget(event, _made(story, target), known)


def _is_plain_output(value: Value | None, depth: int = 12) -> bool:
    """Tell whether a prediction is what a linear layer gives, not scaled to the targets."""
    while value is not None and depth:
        depth -= 1
        value = whole_tensor(value)
        operation = operation_of(value)
        if operation is not None and operation.name == "linear":
            return True
        if isinstance(value, Result) and value.maker == "operator.getitem":
            value = value.args[0]
        else:
            return False
    return False


def _sets_bias(story: Story) -> bool:
    """Tell whether the program gives some layer a bias to begin with, as the mean of targets."""
    return story.recall(_biases_set)


def _biases_set(story: Story) -> bool:
    for event in story.events:
        touched = (event.receiver, *event.args[:1])
        is_write = event.name == "[]" or event.name.endswith("_") or event.name in ("data", "bias")
        number = constant(event.args[-1]) if event.args else None
        if is_write and number != 0 and any(map(_is_bias, touched)):
            return True
    return False


def _is_bias(value: Value | None) -> bool:
    while isinstance(value, Part):
        if value.key == "bias":
            return True
        value = value.of
    return False
