"""Losses that have lost their model: what cuts all of its layers off from a backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Answer, Result, Unknown, Value
from traindx.analysis.program.training.acts import Deed, Do
from traindx.analysis.program.training.freezing import is_ever_frozen
from traindx.analysis.program.training.gradients import (
    Cut,
    carriers,
    cuts_before,
    gives_data,
    has_history,
    is_cut,
    is_foreign,
    runs_behind,
    runs_reached,
)
from traindx.analysis.program.training.ownership import holding_of
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
