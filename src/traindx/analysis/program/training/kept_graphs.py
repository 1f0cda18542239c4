"""Graphs of training steps that a running total or a list holds on to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, LoopRun, ProgramEvent
from traindx.analysis.program.execution.iteration import LONGEST
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Known,
    Result,
    Table,
    Value,
    constant,
    options_of,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.gradients import carriers, has_history
from traindx.analysis.program.training.graphs import (
    Graphs,
    feeds_backward,
    graph_of,
    is_emptied,
    summed,
    turn_in,
)

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

ADDS = (".append", ".appendleft")
TAKEN_OUT = (".clear", ".pop", ".popitem", "operator.delitem")  # of a table
# a running mean goes over a hundred values; a thousand graphs are no longer a window
MANY = 1000


@dataclass(frozen=True, eq=False)
class KeptGraph:
    """Where a tensor of every step is kept with its graph."""

    event: ProgramEvent
    value: Value
    is_number: bool  # it is a loss, or a term of one

    @property
    def remedy(self) -> str:
        """What to call on it, so that no graph is kept."""
        return "item()" if self.is_number else "detach()"


def kept_graphs(story: Story) -> Iterator[KeptGraph]:
    """Yield where a loop that trains adds a tensor with a graph to what no loss is made of."""
    graphs = story.recall(Graphs)
    for loop in _loops_that_train(story):
        for event, kept in (*_totals(graphs, loop), *_lists(story, loop)):
            if not _is_detached(story, event, kept):
                yield KeptGraph(event, kept, _is_minimised(story, kept))


def _loops_that_train(story: Story) -> list[LoopRun]:
    """The loops around a backward pass, of which it runs in a later turn."""
    turns = (turn for deed in story.does(Do.BACKWARD) for turn in deed.event.turns)
    return list({id(turn.loop): turn.loop for turn in turns if turn.number}.values())


def _totals(graphs: Graphs, loop: LoopRun) -> Iterator[tuple[ProgramEvent, Value]]:
    """The values that a turn computes from their own last values and a term with a graph."""
    first: dict[int, ProgramEvent] = {}
    for event in graphs.story.by_loop.get(loop.site.node, ()):
        number, result = turn_in(event, loop), event.result
        if number is None or not isinstance(result, Result) or event.is_own:
            continue
        before = first.setdefault(id(event.node), event)
        if number == 0:
            continue
        last = before.result if before is not event else _begun(graphs, event, loop)
        if last is None or not any(v is last for v in summed(result)):
            continue
        terms = [v for v in _terms(result, last) if has_history(v) is Answer.YES]
        if terms and not feeds_backward(graphs.story, result):
            yield event, terms[0]


def _begun(graphs: Graphs, event: ProgramEvent, loop: LoopRun) -> Value | None:
    """What a total was in the turn before, where its first value is no sum: the first loss."""
    given = [a for a in graphs.story.execution.assignments if a.order > event.order]
    named = {a.name for a in given if event.result in options_of(a.value)}
    for value in summed(event.result) if event.result is not None else ():
        made = graphs.made_at(value)
        is_last = made is not None and turn_in(made, loop) == 0
        if is_last and value.names & named and has_history(value) is Answer.YES:
            return value
    return None


def _terms(result: Value, before: Value) -> list[Value]:
    """What is added to a total, through scaling: `loss` of `total + loss * n`."""
    found: list[Value] = []
    for value in carriers(result):
        if any(v is before for v in graph_of(value, certain=False)):
            continue
        found.append(_unscaled(value))
    return found


def _unscaled(value: Value, depth: int = 6) -> Value:
    """The tensor that is scaled before it is kept, by the name that it has."""
    is_scaled = isinstance(value, Result) and value.maker in ("operator.mul", "operator.div")
    if value.names or not is_scaled or depth == 0:
        return value
    below = next((v for v in carriers(value) if has_history(v) is Answer.YES), None)
    return value if below is None else _unscaled(below, depth - 1)


def _lists(story: Story, loop: LoopRun) -> Iterator[tuple[ProgramEvent, Value]]:
    """The lists and tables that tensors with a graph are added to in every turn, or in records."""
    first: set[tuple[int, int]] = set()
    for event in story.by_loop.get(loop.site.node, ()):
        number, held = turn_in(event, loop), event.receiver
        added = None if number is None else _added(event)
        if added is None or not isinstance(held, (Items, Table)):
            continue
        if number == 0:
            first.add((id(event.node), id(held)))
            continue
        if (id(event.node), id(held)) not in first or _is_short(held):
            continue
        kept = next(_with_graph(added), None)
        if kept is None or _is_emptied(story, held, loop):
            continue
        if not feeds_backward(story, held) and not _is_read_again(story, added):
            yield event, kept


def _added(event: ProgramEvent) -> Value | None:
    """What an event adds to a list, or to a table under a key that is another one each time."""
    if event.act is EventForm.CALL:
        return event.args[-1] if event.name in ADDS and event.args else None
    is_table = event.name == "[]" and isinstance(event.receiver, Table) and len(event.args) > 1
    return event.args[0] if is_table and not isinstance(event.args[1], Known) else None


def _is_emptied(story: Story, held: Items | Table, loop: LoopRun) -> bool:
    if isinstance(held, Items):
        return is_emptied(story, held, loop)
    takes = (e for e in story.events if e.name in TAKEN_OUT and turn_in(e, loop) is not None)
    return any(e.receiver is held or (e.args and e.args[0] is held) for e in takes)


def _with_graph(added: Value) -> Iterator[Value]:
    """Yield the tensors of what is added that have a graph: itself, or parts of a record."""
    if isinstance(added, (Items, Table)):
        for member in added.inputs:
            yield from _with_graph(member)
    elif has_history(added) is Answer.YES:
        yield added


def _is_read_again(story: Story, added: Value) -> bool:
    """Tell whether a loss is made of a record; of a tensor that is kept, the first one is."""
    return isinstance(added, (Items, Table)) and feeds_backward(story, added)


def _is_short(held: Value) -> bool:
    """Tell whether a queue may keep few members only, and lets go of the others."""
    longest = held.fields.get(LONGEST)
    most = constant(longest)
    return longest is not None and not (isinstance(most, int) and most >= MANY)


def _is_minimised(story: Story, kept: Value) -> bool:
    """Tell whether a backward pass is called on a value, or on a sum with it."""
    losses = (d.subject for d in story.does(Do.BACKWARD) if d.subject is not None)
    return any(v is kept for loss in losses for v in summed(loss))


def _is_detached(story: Story, event: ProgramEvent, kept: Value) -> bool:
    """Tell whether the loss is detached in place before it is kept; in a list, ever."""
    calls = [e for e in story.index.on(kept) if e.name == ".detach_"]
    return any(e.order < event.order or event.name in ADDS for e in calls)
