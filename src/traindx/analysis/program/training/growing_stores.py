"""What grows in the host's memory with every epoch: lists of batches, caches without a bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, LoopRun, ProgramEvent
from traindx.analysis.program.execution.iteration import LONGEST, wrapped
from traindx.analysis.program.execution.values import (
    Answer,
    FunctionValue,
    Items,
    Result,
    Table,
    Value,
    origins,
)
from traindx.analysis.program.syntax import Function
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.facts.batches import drawn
from traindx.analysis.program.training.gradients import is_cut
from traindx.analysis.program.training.graphs import feeds_backward, is_emptied
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.tensors import is_tensor

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

ADDS = frozenset({".append", ".appendleft"})
TAKEN_OUT = frozenset({".clear", ".pop", ".popitem", "operator.delitem", ".cache_clear"})
# what gives the same numbers, on the host or beside
COPIED = frozenset({"detach", "cpu", "numpy", "clone", "to", "float", "half", "contiguous", "array",
                    "asarray", "copy", "deepcopy"})  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class GrowingStore:
    """Where something is kept that is as large as a batch or an example, for good."""

    event: ProgramEvent
    says: str


def growing_stores(story: Story) -> Iterator[GrowingStore]:
    """Yield what keeps more of the data with every epoch, and never lets go of it."""
    epochs = _epochs(story)
    if not epochs:
        return
    yield from _lists(story, epochs)
    made = [e for example in story.execution.examples for e in example.events]
    let_go = [e for e in (*made, *story.events) if e.name in TAKEN_OUT]
    for event in (*made, *(e for e in story.events if _is_kept(e))):
        kept = _cached(story, event, let_go)
        if kept is not None and any(_follows(v, epochs) for v in origins(kept, 60)):
            yield GrowingStore(event, "is kept for each example anew in every epoch")


def _epochs(story: Story) -> list[LoopRun]:
    """Return the loops of unknown length, around others, that a backward pass runs in."""
    turns = [d.event.turns for d in story.does(Do.BACKWARD) if len(d.event.turns) > 1]
    return list({id(t[0].loop): t[0].loop for t in turns if not t[0].loop.is_whole}.values())


def _lists(story: Story, epochs: list[LoopRun]) -> Iterator[GrowingStore]:
    """Yield where a training step adds a batch to a list that was made before the first epoch."""
    for event in story.events:
        if event.name not in ADDS or event.guards or len(event.turns) < 2 or not event.args:
            continue
        held, outer = event.receiver, event.turns[0].loop
        if not isinstance(held, Items) or held.born or LONGEST in held.fields:
            continue
        is_added = any(outer is epoch for epoch in epochs) and _is_batch(story, event.args[-1])
        if is_added and not is_emptied(story, held) and not _is_used(story, held, outer):
            yield GrowingStore(event, "is kept of every batch of every epoch")


def _is_used(story: Story, held: Value, outer: LoopRun) -> bool:
    """Tell whether a list is what losses are made of, or what is read when training is over."""
    if feeds_backward(story, held) or story.execution.returned is held:
        return True
    reads = [e for e in story.uses(held) if e.name not in ADDS and e.act is EventForm.CALL]
    return any(not e.turns or e.turns[0].loop is not outer for e in reads)


def _is_batch(story: Story, value: Value) -> bool:
    """Tell whether a value has numbers for every example: an input or output, not its loss."""
    if isinstance(value, (Items, Table)):
        return any(_is_batch(story, member) for member in value.inputs)
    for _ in range(8):
        operation = operation_of(value)
        if operation is None or operation.name not in COPIED or not operation.operands:
            break
        value = operation.operands[0]
    batch, shape = drawn(story, value), story.shapes.shape(value)
    if batch is not None:
        has_rows = shape is not None and len(shape.sizes) > 1
        return has_rows or is_tensor(story, batch.value) is Answer.YES
    passes = (d.event.result for d in story.does(Do.FORWARD) if not d.event.within)
    return any(value is result for result in passes) and not is_cut(value)


def _is_kept(event: ProgramEvent) -> bool:
    is_stored = event.act is EventForm.STORE and event.name == "[]"
    return is_stored or isinstance(event.callee, FunctionValue)


def _cached(story: Story, event: ProgramEvent, let_go: list[ProgramEvent]) -> Value | None:
    """Return the key under which an event keeps a tensor or an array, where nothing is let go."""
    if isinstance(event.callee, FunctionValue):
        is_kept = _is_unbounded(event.callee) and _is_large(story, event.result)
        is_kept = is_kept and not any(e.name == ".cache_clear" for e in let_go)
        return (
            Items(held=dict(enumerate((*event.args, *event.kwargs.values())))) if is_kept else None
        )
    table = event.receiver if event.act is EventForm.STORE and event.name == "[]" else None
    if not isinstance(table, Table) or len(event.args) < 2 or not _is_large(story, event.args[0]):
        return None
    is_emptied_too = any(e.receiver is table or table in e.args for e in let_go)
    return None if is_emptied_too else event.args[1]


def _is_large(story: Story, value: Value | None) -> bool:
    """Tell whether a value is a tensor or an array, and not a number."""
    if isinstance(value, Items):
        return any(_is_large(story, member) for member in value.members)
    found = story.dtypes.of(value)
    is_many = found is not None and found.holder != "number" and found.is_single is not True
    return is_many or is_tensor(story, value) is Answer.YES


def _is_unbounded(function: FunctionValue) -> bool:
    """Tell whether a function keeps all that it ever returned: `lru_cache(maxsize=None)`."""
    marks = function.node.decorator_list if isinstance(function.node, Function) else []
    return any(_keeps_all(function, mark) for mark in marks)


def _keeps_all(function: FunctionValue, mark: ast.expr) -> bool:
    name = function.module.qualified(mark.func if isinstance(mark, ast.Call) else mark)
    if name != "functools.lru_cache" or not isinstance(mark, ast.Call):
        return name == "functools.cache"
    given = [*mark.args[:1], *(k.value for k in mark.keywords if k.arg == "maxsize")]
    return any(isinstance(v, ast.Constant) and v.value is None for v in given)


def _follows(value: Value, epochs: list[LoopRun]) -> bool:
    """Tell whether a value is the running number of an epoch, or what a loop over epochs gives."""
    if not isinstance(value, Result) or value.maker != "builtins.next" or not value.args:
        return False
    over = wrapped(value.args[0])
    return any(epoch.over is over or epoch.over is value.args[0] for epoch in epochs)
