"""Graphs of training steps that a running total or a list holds on to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import LoopRun, ProgramEvent
from traindx.analysis.program.execution.values import Answer, Items, Result, Value, options_of
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


@dataclass(frozen=True, eq=False)
class KeptGraph:
    """Where a tensor of every step is kept with its graph."""

    event: ProgramEvent
    value: Value


def kept_graphs(story: Story) -> Iterator[KeptGraph]:
    """Yield where a loop that trains adds a tensor with a graph to what no loss is made of."""
    graphs = Graphs(story)
    for _, _, loop in graphs.pairs():
        for event, kept in (*_totals(graphs, loop), *_lists(story, loop)):
            if not _is_detached(story, event, kept):
                yield KeptGraph(event, kept)


def _totals(graphs: Graphs, loop: LoopRun) -> Iterator[tuple[ProgramEvent, Value]]:
    """The values that a turn computes from their own last values and a term with a graph."""
    first: dict[int, ProgramEvent] = {}
    for event in graphs.story.events:
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
    """The lists that tensors with a graph are appended to in every turn."""
    first: set[tuple[int, int]] = set()
    for event in story.events:
        number, held = turn_in(event, loop), event.receiver
        if number is None or event.name != ".append" or not isinstance(held, Items):
            continue
        if number == 0:
            first.add((id(event.node), id(held)))
            continue
        is_kept = (id(event.node), id(held)) in first and has_history(event.args[0]) is Answer.YES
        if is_kept and not is_emptied(story, held, loop) and not feeds_backward(story, held):
            yield event, event.args[0]


def _is_detached(story: Story, event: ProgramEvent, kept: Value) -> bool:
    """Tell whether the loss is detached in place before it is kept; in a list, ever."""
    calls = [e for e in story.events if e.name == ".detach_" and e.receiver is kept]
    return any(e.order < event.order or event.name == ".append" for e in calls)
