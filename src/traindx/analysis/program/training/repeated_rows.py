"""Lists that are put into another in every turn of a loop, and are never emptied in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import LoopRun, ProgramEvent
from traindx.analysis.program.execution.values import Items, Known, Table, Value
from traindx.analysis.program.training.claims import insert_before
from traindx.analysis.program.training.data import Role, feeds, inside
from traindx.analysis.program.training.graphs import is_emptied

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

GROWS = (".append", ".extend", ".insert")
DEEP = 14  # steps from the dataset of a loader to the rows that it is made of


@dataclass(frozen=True, eq=False)
class RepeatedRows:
    """Rows that are added again in each turn: the list that grows, and where it is added."""

    rows: Items
    grows: ProgramEvent
    added: ProgramEvent

    @property
    def name(self) -> str:
        return self.rows.called("the list")

    def patch(self) -> str | None:
        """Return the patch that begins every turn with an empty list."""
        loop = self.grows.turns[-1].loop
        is_inside = loop is not self.added.turns[-1].loop
        is_named = bool(self.rows.names)
        return insert_before(loop.site, f"{self.name} = []") if is_inside and is_named else None


def repeated_rows(story: Story) -> Iterator[RepeatedRows]:
    """Yield the lists of training examples that hold the rows of earlier turns several times."""
    twice = story.recall(_added_twice)
    for added in twice:
        rows = added.args[0]
        loop = added.turns[-1].loop
        grows = _growth(story, rows, loop) if isinstance(rows, Items) else None
        if grows is None or not isinstance(rows, Items) or is_emptied(story, rows, loop):
            continue
        if _is_trained_on(story, rows):
            yield RepeatedRows(rows, grows, added)


def _added_twice(story: Story) -> list[ProgramEvent]:
    """Where one and the same list is added to another in the second turn of a loop as in the first.

    A list that a turn makes anew is another one in every turn.
    """
    first: set[tuple[object, int, int]] = set()
    found: list[ProgramEvent] = []
    for event in story.events:
        rows = event.args[0] if event.name == ".extend" and event.args else None
        if not isinstance(rows, Items) or not event.turns or rows is event.receiver:
            continue
        place = (event.node, id(rows), id(event.receiver))
        if event.turns[-1].number == 0:
            first.add(place)
        elif place in first:
            found.append(event)
    return found


def _growth(story: Story, rows: Items, loop: LoopRun) -> ProgramEvent | None:
    """What adds to a list inside of a loop."""
    for event in story.by_loop.get(loop.site.node, ()):
        if event.name in GROWS and event.receiver is rows:
            return event
    return None


def _is_trained_on(story: Story, rows: Items) -> bool:
    """Tell whether a loader that is not for held-out data reads what is made of the rows."""
    members = {id(v) for m in rows.members for v in (m, *_cells(m))} | {id(rows)}
    read = [
        f.dataset for f in feeds(story) if f.role is not Role.HELD_OUT and f.dataset is not None
    ]
    return any(id(v) in members for dataset in read for v in inside(dataset, DEEP))


def _cells(row: Value) -> list[Value]:
    """What a row that is written down holds; a number is no row's own."""
    held = row.inputs if isinstance(row, (Items, Table)) else ()
    return [v for v in held if not isinstance(v, Known)]
