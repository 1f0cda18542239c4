"""Iterators: what can be gone over once, and loops that come back to one that is used up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import LoopRun, ProgramEvent
from traindx.analysis.program.execution.iteration import ONE_PASS
from traindx.analysis.program.execution.values import Generator, Items, Result, Value

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# what gives an iterator that ends; what wraps one gives its elements on
ONCE = frozenset({"builtins.iter", "builtins.zip", "builtins.enumerate", "builtins.filter",
                  "itertools.chain", "csv.reader", "csv.DictReader"})  # fmt: skip
LEAVES = (ast.Break, ast.Return, ast.Raise, ast.Yield, ast.YieldFrom)
BARS = ("tqdm.", "rich.progress.", "alive_progress.", "progressbar.", "fastprogress.")


@dataclass(frozen=True, eq=False)
class UsedUp:
    """A loop over an iterator that an earlier turn of a loop around has gone over to its end."""

    iterator: Value
    run: LoopRun  # the loop in a later turn
    around: LoopRun


def is_iterator(value: Value) -> bool:
    """Tell whether a value gives its elements once: a generator, `iter(…)`, `zip(…)`, `map(…)`."""
    if isinstance(value, Result):
        return value.maker in ONCE and value.receiver is None
    return isinstance(value, Generator) or (isinstance(value, Items) and value.kind == ONE_PASS)


def iterators_in(over: Value) -> Iterator[Value]:
    """Yield the iterators that a loop goes over, through progress bars, counters and `zip`."""
    if is_iterator(over):
        yield over
    if not isinstance(over, Result):
        return
    if over.maker in ("builtins.enumerate", "builtins.iter") or over.maker.startswith(BARS):
        yield from (v for inner in over.args[:1] for v in iterators_in(inner))
    elif over.maker == "builtins.zip":
        yield from (v for inner in over.args for v in iterators_in(inner))


def used_up(story: Story) -> list[UsedUp]:
    """Return the loops that find nothing left: each place once, as it is run the second time."""
    return story.recall(_used_up)


def _used_up(story: Story) -> list[UsedUp]:
    first: dict[tuple[int, ast.AST], tuple[ProgramEvent, LoopRun]] = {}
    found: dict[ast.AST, UsedUp] = {}
    leaves: dict[ast.AST, bool] = {}
    for event in story.events:
        for depth, run in enumerate(event.loops):
            node = run.site.node
            if run.over is None or node in found or _is_left(run, leaves):
                continue
            for iterator in iterators_in(run.over):
                earlier = first.setdefault((id(iterator), run.site.node), (event, run))
                around = _later_turn(earlier[0], event, depth)
                if around is not None and earlier[1] is not run:
                    found[run.site.node] = UsedUp(iterator, run, around)
    return list(found.values())


def _is_left(run: LoopRun, known: dict[ast.AST, bool]) -> bool:
    """Tell whether a loop may end early, having looked at each loop once."""
    node = run.site.node
    if node not in known:
        known[node] = _may_leave(run)
    return known[node]


def _later_turn(first: ProgramEvent, event: ProgramEvent, depth: int) -> LoopRun | None:
    """Return the loop around whose turn an event is in later than the first one was."""
    earlier = {id(turn.loop): turn.number for turn in first.turns}
    for turn in event.turns[:depth]:
        number = earlier.get(id(turn.loop))
        if number is not None and turn.number > number:
            return turn.loop
    return None


def _may_leave(run: LoopRun) -> bool:
    """Tell whether a loop may end before what it goes over does.

    A loop that draws by `next` ends in the handler of StopIteration, as it should.
    """
    node = run.site.node
    pending: list[ast.AST] = list(node.body) if isinstance(node, (ast.For, ast.While)) else []
    while pending:
        found = pending.pop()
        if isinstance(found, LEAVES):
            return True
        is_end = isinstance(found, ast.ExceptHandler) and isinstance(node, ast.While)
        pending.extend(() if is_end else ast.iter_child_nodes(found))
    return False
