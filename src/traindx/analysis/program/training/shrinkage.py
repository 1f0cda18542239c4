"""Weights that the program itself makes smaller in every step, beside what their gradients do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Known, Part, Value, is_same, origins
from traindx.analysis.program.training.acts import (
    Do,
    gradient_owner,
    is_gradient,
    model_of,
    reads_gradients,
)
from traindx.analysis.program.training.decay import Decay, is_weight
from traindx.analysis.program.training.operations import is_in_place, operation_name, operation_of
from traindx.analysis.program.training.ownership import trains
from traindx.analysis.program.training.settings import one_number
from traindx.analysis.program.training.step_sizes import groups_of
from traindx.analysis.program.training.updates import changed_tensor

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

LINEAR = frozenset({"add", "sub", "mul", "div", "neg"})
SAME = frozenset({"detach", "clone", "data"})


@dataclass(frozen=True, slots=True, eq=False)
class Shrinkage:
    """A place that takes the same share of every weight away in each step."""

    event: ProgramEvent
    share: float


def shrinkages(story: Story) -> Iterator[Shrinkage]:
    """Yield where weights that are trained are multiplied by a number below one in every step."""
    writes = story.recall(_writes)
    for event, weight in writes:
        left = _factor(story, event, weight)
        if left is None or not 0 < left < 1 or not event.turns:
            continue
        alike = [e for e, other in writes if _is_one(other, weight)]
        if _is_learnt(story, weight, alike) and not any(_mixes(e, weight) for e in alike):
            yield Shrinkage(event, 1 - left)


def _writes(story: Story) -> list[tuple[ProgramEvent, Value]]:
    """The events that change a weight in place, or give it other data, each with the weight."""
    found: list[tuple[ProgramEvent, Value]] = []
    for event in story.events:
        is_store = event.act is EventForm.STORE and event.name == "data"
        if not is_store and (event.act is EventForm.STORE or not is_in_place(event.name)):
            continue
        target = event.receiver if event.receiver is not None else next(iter(event.args), None)
        weight = _plain(changed_tensor(target))
        if weight is not None and is_weight(weight):
            found.append((event, weight))
    return found


def _is_one(weight: Value, other: Value) -> bool:
    """Tell whether two weights are one, or are drawn alike from the weights of one model."""
    if weight is other:
        return True
    return model_of(weight) is model_of(other) and is_same(weight, other, by_turn=True)


def _plain(value: Value | None) -> Value | None:
    """Look through `.data`, `.detach()` and changes in place, which are the same numbers."""
    while True:
        operation = operation_of(value)
        if isinstance(value, Part) and value.key == "data":
            value = value.of
        elif operation is not None and operation.operands and (
            operation.name in SAME or is_in_place(getattr(value, "maker", ""))
        ):  # fmt: skip
            value = operation.operands[0]
        else:
            return value


def _factor(story: Story, event: ProgramEvent, weight: Value) -> float | None:
    """How much of a weight is left of it by what an event writes; None where that is unknown."""
    if event.act is EventForm.STORE:
        return _share(story, event.args[0], weight)
    name = operation_name(event.name)
    rest = event.args if event.receiver is not None else event.args[1:]
    given = next(iter(rest), None)
    if given is None:
        return None
    if name in ("mul", "div"):
        number = one_number(story, given)
        return None if not number else number if name == "mul" else 1 / number
    added = _added(story, event, weight)
    return None if added is None else 1 + added


def _added(story: Story, event: ProgramEvent, weight: Value) -> float | None:
    """How much of a weight a sum in place adds; None where it is no sum, or that is unknown."""
    name = operation_name(event.name)
    rest = event.args if event.receiver is not None else event.args[1:]
    if name not in ("add", "sub") or not rest:
        return None
    times = one_number(story, event.kwargs.get("alpha") or Known(1))
    inner = _share(story, rest[0], weight)
    if times is None or inner is None:
        return None
    return (times if name == "add" else -times) * inner


def _share(story: Story, value: Value, weight: Value, depth: int = 10) -> float | None:
    """The number before a weight in a sum; 0 where it is no part of it, None where unknown."""
    plain = _plain(value)
    if plain is None or depth == 0:
        return None
    if plain is weight or is_same(plain, weight):
        return 1.0
    operation = operation_of(plain)
    if operation is None or operation.name not in LINEAR:
        return 0.0
    if operation.name == "neg":
        inner = _share(story, operation.operands[0], weight, depth - 1)
        return None if inner is None else -inner
    first, second = (*operation.operands, Known(0))[:2]
    if operation.name in ("add", "sub"):
        times = one_number(story, operation.settings.get("alpha") or Known(1))
        shares = [_share(story, v, weight, depth - 1) for v in (first, second)]
        if times is None or shares[0] is None or shares[1] is None:
            return None
        return shares[0] + (times if operation.name == "add" else -times) * shares[1]
    shares = [_share(story, v, weight, depth - 1) for v in (first, second)]
    if shares == [0.0, 0.0]:
        return 0.0
    inner, number = shares[0], one_number(story, second)
    if operation.name == "mul" and number is None:
        inner, number = shares[1], one_number(story, first)
    if inner is None or not number:
        return None
    return inner * number if operation.name == "mul" else inner / number


def _is_learnt(story: Story, weight: Value, writes: list[ProgramEvent]) -> bool:
    """Tell whether a weight follows gradients as well: by hand, or by an optimizer."""
    deeds = {id(d.event) for d in story.does(Do.MANUAL_UPDATE)}
    if any(id(e) in deeds for e in writes):
        return True
    model = model_of(weight)
    steps = (d.subject for d in story.does(Do.STEP) if d.subject is not None)
    return model is not None and any(trains(optimizer, model) for optimizer in steps)


def _mixes(event: ProgramEvent, weight: Value) -> bool:
    """Tell whether an event puts other numbers into a weight than gradients: an average, noise."""
    name = operation_name(event.name)
    rest = event.args if event.receiver is not None or event.act is EventForm.STORE else (
        event.args[1:])  # fmt: skip
    given = [v for v in rest if not isinstance(v, Known)]
    if name in ("mul", "div") and event.act is not EventForm.STORE:
        return False
    return any(_is_foreign(v, weight) for v in given)


def _is_foreign(value: Value, weight: Value) -> bool:
    """Tell whether a value is made of another weight, or neither of gradients nor of this one."""
    weights = [v for v in origins(value, 200) if is_weight(v)]
    if any(not _is_one(v, weight) for v in weights):
        return True
    return not reads_gradients(value) and not _is_multiple(value, weight)


def _is_multiple(value: Value, weight: Value) -> bool:
    """Tell whether a value is computed from a weight by sums and products only."""
    plain = _plain(value)
    operation = operation_of(plain)
    if plain is None or operation is None or operation.name not in LINEAR:
        return plain is not None and _is_one(plain, weight)
    return any(_is_multiple(v, weight) for v in operation.operands)


def gradient_decays(story: Story) -> Iterator[Decay]:
    """Yield the weight decays that a program adds to the gradients by itself."""
    for event in story.events:
        is_store = event.act is EventForm.STORE and event.name == "grad"
        changed = event.receiver if event.receiver is not None else next(iter(event.args), None)
        if not is_store and not (is_in_place(event.name) and is_gradient(changed)):
            continue
        weight = _plain(changed if is_store else gradient_owner(changed))
        if weight is None or not is_weight(weight) or not event.turns:
            continue
        value = event.args[0] if is_store else event.result
        amount = _share(story, event.args[0], weight) if is_store else None
        amount = _added(story, event, weight) if not is_store else amount
        for group in groups_of(story) if amount else ():
            if group.rate is not None and amount and _holds(group.optimizer, weight):
                yield Decay(group.optimizer, weight, amount, group.rate, by=value)


def _holds(optimizer: Value, weight: Value) -> bool:
    model = model_of(weight)
    return model is not None and trains(optimizer, model)
