"""Losses: what a program computes to be minimised, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Known,
    Part,
    Result,
    Value,
    constant,
    options_of,
)
from traindx.analysis.program.training.gradients import has_history, history
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.operations import LOSSES, is_in_place, operation_of
from traindx.analysis.program.training.scaling import is_gradient_scaler

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

REDUCES = frozenset({"mean", "sum", "nanmean"})


def losses(story: Story, events: Iterable[ProgramEvent]) -> Iterator[ProgramEvent]:
    """Yield where a loss with a history is computed: by a loss function, or a mean or sum."""
    for event in events:
        if event.act is not EventForm.CALL or event.is_own or event.gradients is Answer.NO:
            continue
        if event.within or event.result is None:
            continue
        operation = operation_of(event.result)
        name = "" if operation is None else operation.name
        is_called = event.name == "()" and story.kind_of(event.receiver).kind is Kind.LOSS
        is_reduced = name in REDUCES and has_history(event.result) is Answer.YES
        if is_called or name in LOSSES or is_reduced:
            yield event


def all_losses(story: Story) -> list[ProgramEvent]:
    """Return where a loss with a history is computed in a whole story."""
    return story.recall(_all_losses)


def _all_losses(story: Story) -> list[ProgramEvent]:
    return list(losses(story, story.events))


def carries(value: Value, carried: Iterable[Value]) -> bool:
    """Tell whether a value is one of several, or was made of one with its history."""
    wanted = {id(o) for v in carried for o in options_of(v)}
    return any(id(v) in wanted for v in history(value))


def is_passed_on(story: Story, events: Iterable[ProgramEvent], loss: Iterable[Value]) -> bool:
    """Tell whether something out of sight gets a loss or what was made of it."""
    found = list(loss)
    for event in events:
        if event.is_own or event.act is EventForm.STORE or story.is_harmless(event):
            continue
        if event.name == ".scale" and is_gradient_scaler(story, event.receiver):
            continue
        if any(carries(a, found) for a in (*event.args, *event.kwargs.values())):
            return True
    return False


def is_mean(loss: Value | None) -> bool:
    """Tell whether a value is averaged over the batch: a loss of torch, a mean, a sum of such.

    In a sum one term has to be whole; a number in front of all of them may divide it.
    """
    if isinstance(loss, Part) and loss.key == "loss":
        return _is_pretrained(loss.of)
    operation = operation_of(loss)
    if operation is None:
        return False
    if operation.name in ("add", "sub"):
        terms = [v for v in operation.operands if not isinstance(v, Known)]
        rest = [t for t in terms if not is_mean(t)]
        return len(rest) < len(terms) and all(_is_weighted_mean(t) for t in rest)
    if operation.name == "mean":
        return len(operation.operands) == 1 and not operation.settings
    if operation.name == "neg" and operation.operands:
        return is_mean(operation.operands[0])
    if operation.name not in LOSSES:
        return False
    reduction = operation.argument("reduction")
    return reduction is None or constant(reduction) == "mean"


def _is_pretrained(output: Value) -> bool:
    """Tell whether a model of Transformers gives an output; its loss is a mean."""
    model = output.receiver if isinstance(output, Result) and output.maker == "()" else None
    return isinstance(model, Result) and model.maker.startswith("transformers.")


def _is_weighted_mean(value: Value) -> bool:
    operation = operation_of(value)
    return (
        operation is not None and operation.name == "mul" and any(map(is_mean, operation.operands))
    )


def is_changed(loss: Value, events: Iterable[ProgramEvent]) -> bool:
    """Tell whether a loss is changed in place, or a hook changes its gradient."""
    return any(
        e.receiver is loss and (is_in_place(e.name) or e.name == ".register_hook") for e in events
    )
