"""Which parameters get gradients at all: what no backward pass reaches, and what is in the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Answer, Items, Result, Value, origins
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.gradients import Cut, cut_of, history
from traindx.analysis.program.training.layers import has_parameters
from traindx.analysis.program.training.losses import all_losses, carries, is_passed_on
from traindx.analysis.program.training.ownership import (
    Holding,
    holding_of,
    is_left_alone,
    learning_layers,
)
from traindx.analysis.program.training.updates import (
    is_made,
    updates,
    writes_gradients,
)

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story


def feeds(story: Story, backward: Deed, optimizer: Value) -> Answer:
    """Tell whether a backward pass gives gradients to parameters of an optimizer."""
    holding = holding_of(story, optimizer)
    learnt = learning_layers(backward)
    if any(holding.has(layer) for layer in learnt):
        return Answer.YES
    held = [layer for layer in holding.layers if has_parameters(layer)]
    if holding.is_open or not held or not learnt or backward.subject is None:
        return Answer.UNKNOWN
    is_hidden = _is_repeated(backward.subject) or _leaves_sight(story, held)
    return Answer.UNKNOWN if is_hidden else Answer.NO


def _is_repeated(loss: Value) -> bool:
    """Tell whether a loss comes out of a recursion that was not followed to its end."""
    return any(isinstance(v, Result) and v.maker.startswith("recursion.") for v in history(loss))


def _leaves_sight(story: Story, layers: Sequence[Value]) -> bool:
    """Tell whether what layers compute is handed out of sight, from where it may come back."""
    if len(story.events) > MOST:
        return True  # too much to look through
    wanted = {id(layer) for layer in layers}
    runs = [
        e.result
        for e in story.index.named("()")
        if id(e.receiver) in wanted and e.result is not None
    ]
    kept = (e for e in story.index.named(*KEEPS) if not isinstance(e.receiver, Items))
    if any(carries(a, runs) for e in kept for a in e.args):
        return True
    return is_passed_on(story, story.events, runs)


MOST = 6000  # events
KEEPS = frozenset({".append", ".add", ".push", ".put", ".extend", ".appendleft"})


@dataclass(frozen=True, eq=False)
class UnfedStep:
    """A step of an optimizer that no backward pass feeds, and the loss that would."""

    step: Deed
    loss: ProgramEvent


def unfed_steps(story: Story) -> Iterator[UnfedStep]:
    """Yield the steps for which a loss is computed that nothing propagates back."""
    backwards = story.does(Do.BACKWARD)
    if story.does(Do.GRAD, Do.MANUAL_UPDATE) or writes_gradients(story, story.events):
        return
    for step in story.does(Do.STEP) if backwards else ():
        optimizer = step.subject
        if optimizer is None or not is_made(optimizer) or step.event.by_framework:
            continue
        if any(feeds(story, b, optimizer) is not Answer.NO for b in backwards):
            continue
        loss = _loss_for(story, holding_of(story, optimizer))
        if loss is not None and story.escapes(optimizer) is Answer.NO:
            yield UnfedStep(step, loss)


def _loss_for(story: Story, holding: Holding) -> ProgramEvent | None:
    """Return a loss of layers that are held, which nothing out of sight gets."""
    for event in all_losses(story):
        made = event.result
        if made is None or is_passed_on(story, story.events, [made]):
            continue
        if any(has_parameters(v) and holding.has(v) for v in history(made)):
            return event
    return None


@dataclass(frozen=True, eq=False)
class CutLayer:
    """A layer that an optimizer holds and a loss is computed from, without a gradient."""

    backward: Deed
    layer: Value
    how: Cut
    cut: Value


def cut_layers(story: Story) -> list[CutLayer]:
    """Return the layers that every way from every backward pass is cut off from.

    Those that are loaded, frozen or kept in evaluation mode may be meant to stay as they are.
    """
    backwards = [d for d in story.does(Do.BACKWARD) if d.subject is not None]
    if story.does(Do.GRAD, Do.MANUAL_UPDATE):
        return []
    ends = [d.subject for d in backwards] + [e.result for e in all_losses(story)]
    learnt = {id(v) for end in ends if end is not None for v in history(end) if has_parameters(v)}
    found: dict[int, CutLayer] = {}
    for update in updates(story):
        optimizer, loss = update.optimizer, update.backward.subject
        if optimizer is None or loss is None or _is_repeated(loss):
            continue
        holding = holding_of(story, optimizer)
        for how, cut, layer in () if holding.is_open else _behind_cuts(loss):
            is_cut = holding.has(layer) and id(layer) not in learnt and id(layer) not in found
            if is_cut and not is_left_alone(story, layer, update.backward.event):
                found[id(layer)] = CutLayer(update.backward, layer, how, cut)
    hidden = _leaves_sight(story, [cut.layer for cut in found.values()]) if found else True
    return [] if hidden else list(found.values())


def _behind_cuts(loss: Value) -> Iterator[tuple[Cut, Value, Value]]:
    """The layers behind each place where the history of a loss ends."""
    for value in history(loss):
        how = cut_of(value)
        if how not in (Cut.DETACHED, Cut.UNRECORDED):
            continue
        for below in origins(value):
            if has_parameters(below):
                yield how, value, below
