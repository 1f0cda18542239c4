"""Losses that have lost their model: what cuts all of its layers off from a backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.contexts import is_switch
from traindx.analysis.program.execution.events import EventForm as Form
from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.library import LISTINGS, modules_in
from traindx.analysis.program.execution.values import Answer, Part, Result, Unknown, Value, constant
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.freezing import is_ever_frozen
from traindx.analysis.program.training.gradients import (
    Cut,
    carriers,
    cuts_before,
    gives_data,
    has_history,
    history,
    is_cut,
    is_foreign,
    runs_behind,
    runs_reached,
    terms_of,
)
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.ownership import holding_of, owns
from traindx.analysis.program.training.updates import updates

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story


def lost_history(story: Story, backward: Deed) -> list[tuple[Cut, Value]]:
    """Return what cuts a loss off from its model, nearest first; empty where a way is left.

    That a single parameter or a penalty on the weights still gets a gradient is no way: what the
    layers compute from the data has to reach the loss.
    """
    loss = backward.subject
    if loss is None:
        return []
    if has_history(loss) is Answer.NO:
        return cuts_before(loss)
    return cuts_before(loss) if _is_severed(story, backward, loss) else []


def _is_severed(story: Story, backward: Deed, loss: Value) -> bool:
    if runs_reached(loss, certain=False) or _is_open(loss):
        return False
    layers = [r.receiver for r in runs_behind(loss) if r.receiver is not None]
    owners = [u.optimizer for u in updates(story) if u.backward is backward]
    if not layers or not owners:
        return False
    holding = holding_of(story, *(o for o in owners if o is not None))
    if holding.is_open or not all(holding.has(layer) for layer in layers):
        return False
    if any(is_ever_frozen(story, x) is not Answer.NO for x in layers):
        return False
    others = [d.subject for d in story.does(Do.BACKWARD, Do.GRAD) if d.subject is not None]
    learnt = {id(r.receiver) for other in others for r in runs_reached(other, certain=False)}
    return not any(id(layer) in learnt for layer in layers)


def _is_open(loss: Value) -> bool:
    """Tell whether gradients of a loss may flow into something out of sight, other than data."""
    pending, seen = [loss], {id(loss)}
    while pending:
        value = pending.pop()
        is_made = isinstance(value, Result)
        if is_cut(value) or (isinstance(value, Result) and gives_data(value)):
            continue
        if isinstance(value, Unknown) or (is_made and _is_hidden(value)):
            return True
        for below in carriers(value):
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)
    return False


def _is_hidden(value: Value) -> bool:
    maker = value.maker if isinstance(value, Result) else ""
    is_call = isinstance(value, Result) and maker != "()" and is_foreign(value)
    return maker.startswith("recursion.") or is_call


def _unrecorded_chance(term: Value) -> Value | None:
    """The log-probability of a term that has no history, since autograd was off."""
    if has_history(term) is not Answer.NO:
        return None
    found = (v for how, v in cuts_before(term) if how is Cut.UNRECORDED)
    return next((v for v in found if _is_of_policy(v)), None)


def _is_trained_here(story: Story, loss: Value, chance: Value) -> bool:
    """Tell whether the layer behind is the optimizer's, and no other term reaches it."""
    layer = runs_behind(chance)[0].receiver
    reached = any(r.receiver is layer for r in runs_reached(loss))
    optimizers = [d.subject for d in story.does(Do.STEP) if d.subject is not None]
    return (
        layer is not None and not reached and any(owns(o, layer) is Answer.YES for o in optimizers)
    )


def _is_of_policy(value: Value) -> bool:
    operation = operation_of(value)
    return operation is not None and operation.name in ("log_prob", "log_softmax", "gather")


def _name(cut: Value) -> str:
    if isinstance(cut, Part):
        return f".{cut.key}"
    maker = cut.maker if isinstance(cut, Result) else ""
    return f"{maker}()" if maker.startswith(".") else f"{maker}(…)"


@dataclass(frozen=True, eq=False)
class Severed:
    """A backward pass on a value that knows nothing of the model, or may hide that."""

    backward: Deed
    how: str  # what cuts it off, in words; empty for a remark on `requires_grad`
    cut: Value | None = None
    set_by: ProgramEvent | None = None


def severed_losses(story: Story) -> Iterator[Severed]:
    """Yield the backward passes on values that were cut from the computation."""
    for backward in story.does(Do.BACKWARD):
        found = None if backward.subject is None else _severed(story, backward, backward.subject)
        if found is not None:
            yield found


def _severed(story: Story, backward: Deed, loss: Value) -> Severed | None:
    cuts = lost_history(story, backward)
    if cuts and all(how is Cut.DETACHED for how, _ in cuts):
        return Severed(backward, _name(cuts[0][1]), cuts[0][1])
    for term in terms_of(loss) if not cuts else []:
        chance = _unrecorded_chance(term)
        if chance is not None and _is_trained_here(story, loss, chance):
            return Severed(backward, "no_grad", chance)
    forced = _forced(story, backward, loss)
    return None if forced is None else Severed(backward, "", set_by=forced)


def _forced(story: Story, backward: Deed, loss: Value) -> ProgramEvent | None:
    """`loss.requires_grad = True`: a loss that has a history needs no such line."""
    for event in story.index.on(loss):
        if event.order > backward.event.order:
            continue
        is_store = event.act is Form.STORE and event.name == "requires_grad"
        given = constant(event.args[0]) if event.args else True
        if given is True and (is_store or event.name == ".requires_grad_"):
            return event
    return None


def flat_layers(story: Story) -> list[tuple[Value, Value]]:
    """Return operations without a slope, each with a layer that no loss reaches but through it.

    The layer is an optimizer's and nothing freezes it: it is meant to learn.
    """
    losses = [d.subject for d in story.does(Do.BACKWARD, Do.GRAD) if d.subject is not None]
    optimizers = [d.subject for d in story.does(Do.STEP) if d.subject is not None]
    flat = [v for loss in losses for how, v in cuts_before(loss) if how is Cut.FLAT]
    if not flat or any(_is_open(loss) for loss in losses):
        return []
    reached = {id(v) for loss in losses for v in _weights_reached(loss)}
    found = []
    for cut in flat:
        layers = [r.receiver for r in runs_behind(cut) if id(r.receiver) not in reached]
        for layer in layers:
            is_held = layer is not None and any(_holds(story, o, layer) for o in optimizers)
            if layer is not None and is_held and is_ever_frozen(story, layer) is Answer.NO:
                found.append((cut, layer))
                break
    return found


def _holds(story: Story, optimizer: Value, layer: Value) -> bool:
    holding = holding_of(story, optimizer)
    is_listed = not holding.is_open and holding.has(layer)
    return is_listed or owns(optimizer, layer) is Answer.YES


def _weights_reached(loss: Value) -> Iterator[Value]:
    """Yield the layers, and what holds them, that gradients of a loss flow into."""
    for value in history(loss):
        if isinstance(value, Result) and value.maker == "()" and not is_cut(value):
            yield value.receiver or value
        elif isinstance(value, Part) and value.key in ("weight", "bias"):
            yield value.of
        elif isinstance(value, Result) and value.maker in LISTINGS and value.receiver is not None:
            yield from modules_in(value.receiver)


@dataclass(frozen=True, slots=True, eq=False)
class Unrecorded:
    """A backward pass on a loss that was computed with gradients off, and what turned them off."""

    backward: Deed
    computed: Value
    switch: Value | None


def unrecorded_losses(story: Story) -> Iterator[Unrecorded]:
    """Yield the backward passes on losses whose whole history was computed with gradients off."""
    for backward in story.does(Do.BACKWARD):
        cuts = lost_history(story, backward)
        if cuts and all(how is Cut.UNRECORDED for how, _ in cuts):
            yield Unrecorded(backward, cuts[0][1], _switch(story, cuts[0][1]))


def _switch(story: Story, computed: Value) -> Value | None:
    """The context around a computation that turns gradients off, where it is in sight."""
    event = story.giver_of(computed) if computed.site is not None else None
    around = event.contexts if event is not None else ()
    return next((c for c in reversed(around) if is_switch(c) and c.site is not None), None)
