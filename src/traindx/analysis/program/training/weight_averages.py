"""Moving averages of weights that training keeps beside a model, as its own or in a copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.library import LISTINGS
from traindx.analysis.program.execution.values import (
    Answer,
    Instance,
    Items,
    Result,
    Table,
    Value,
    options_of,
    origins,
)
from traindx.analysis.program.training.acts import Do, is_gradient, model_of
from traindx.analysis.program.training.checkpoints import Saved, loads, saves, states_taken
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.operations import is_in_place
from traindx.analysis.program.training.reach import is_held

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

COPIES = (".clone", ".copy", "copy.deepcopy", "torch.clone")
AVERAGED = "torch.optim.swa_utils.AveragedModel"


@dataclass(frozen=True, eq=False)
class WeightAverage:
    """An average of a model's weights, and where training moves it on."""

    holder: Value  # the copy of the model, or the tensors
    event: ProgramEvent


@dataclass(frozen=True, eq=False)
class LostAverage:
    """An average that a checkpoint leaves out, so that a resumed run begins it anew."""

    average: WeightAverage
    save: Saved


def weight_averages(story: Story) -> Iterator[WeightAverage]:
    """Yield the averages that are moved on in a loop that steps an optimizer."""
    turns = {run.site.node for d in story.does(Do.STEP) for run in d.event.loops}
    seen: set[int] = set()
    for event in story.events if turns else ():
        if event.is_own or not any(run.site.node in turns for run in event.loops):
            continue
        holder = _holder(event)
        if holder is not None and id(holder) not in seen:
            seen.add(id(holder))
            yield WeightAverage(holder, event)


def _holder(event: ProgramEvent) -> Value | None:
    """Return what an event moves towards the weights of a model, which it is no part of."""
    if event.name == ".update_parameters" and isinstance(event.receiver, Result):
        return event.receiver if event.receiver.maker == AVERAGED else None
    if event.act is EventForm.STORE or not is_in_place(event.name) or event.name == ".copy_":
        return None
    target = event.receiver if event.receiver is not None else next(iter(event.args), None)
    given = event.args if event.receiver is not None else event.args[1:]
    sources = [m for value in given for m in _listed(value)]
    if target is None or not sources or is_gradient(target):
        return None
    first = options_of(_changed(target))[0]
    own = model_of(first)
    if any(isinstance(v, Result) and v.maker in COPIES for v in origins(first, 8)):
        return first
    is_other = own is not None and all(own is not m for m in sources)
    return own if is_other and isinstance(own, Instance) and own.original is not None else None


def _changed(target: Value) -> Value:
    """Return the tensor that a chain of operations in place changes: `a.mul_(d).add_(p)`."""
    while isinstance(target, Result) and is_in_place(target.maker) and target.inputs:
        target = target.inputs[0]
    return target


def _listed(value: Value) -> Iterator[Value]:
    """Yield the models whose weights a value is made of."""
    for found in origins(value, 40):
        if is_gradient(found):
            return
        is_list = isinstance(found, Result) and found.maker in LISTINGS
        if is_list and isinstance(found, Result) and found.receiver is not None:
            yield found.receiver


def lost_averages(program: Program, story: Story) -> Iterator[LostAverage]:
    """Yield the averages that are neither saved nor made anew from the restored weights."""
    if Kind.UNKNOWN in states_taken(program):
        return
    for loaded in loads(story):
        kinds = {story.kind_of(d.subject).kind for d in loaded.restored}
        goes_on = Kind.OPTIMIZER in kinds or loaded.is_resumed
        if not goes_on or Kind.MODEL not in kinds or loaded.is_open:
            continue
        save = next((s for s in saves(story) if s.states and s.is_whole), None)
        for average in weight_averages(story) if save is not None else ():
            made = _made(story, average.holder)
            is_first = made is not None and made.order < loaded.restored[0].event.order
            if save is not None and is_first and not _is_kept(story, average.holder):
                yield LostAverage(average, save)


def _made(story: Story, holder: Value) -> ProgramEvent | None:
    """Return where an average was begun: behind a resume it begins with the restored weights."""
    return story.giver_of(holder)


def _is_kept(story: Story, holder: Value) -> bool:
    """Tell whether an average is saved, restored, or set to something at once."""
    contents = [s.deed.subject for s in saves(story) if s.deed.subject is not None]
    if any(_is_inside(content, holder) for content in contents):
        return True
    if any(d.subject is holder for d in story.does(Do.LOAD_STATE)):
        return True
    return story.escapes(holder) is not Answer.NO


def _is_inside(content: Value, holder: Value) -> bool:
    """Tell whether what is saved holds an average, itself or in an object or list."""
    parts = list(origins(content, 2000))
    objects = (v for v in parts if isinstance(v, (Instance, Items, Table)))
    return any(v is holder for v in parts) or any(is_held(v, holder) for v in objects)
