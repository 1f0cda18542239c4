"""Rows of a batch that share one memory: a buffer that is filled anew for each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Items, Known, Result, Table, Value
from traindx.analysis.program.training.claims import replace, source_text
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

STACKS = frozenset({"stack", "cat", "concatenate", "vstack", "array", "tensor"})
# what gives another look at the same memory
VIEWS = frozenset({"from_numpy", "as_tensor", "asarray", "view", "squeeze", "unsqueeze", "detach",
                   "numpy", "flatten", "ravel", "reshape", "transpose", "permute"})  # fmt: skip
FILLS = frozenset({".copy_", "numpy.copyto"})


@dataclass(frozen=True, eq=False)
class SharedBuffer:
    """Rows that are all one buffer, what fills it, and what puts the rows together."""

    row: Value
    fill: ProgramEvent
    stacked: ProgramEvent

    def patch(self) -> str | None:
        """Return the patch that makes a copy of each row."""
        is_tensor = isinstance(self.row, Result) and self.row.maker == "torch.from_numpy"
        if not is_tensor or self.row.site is None:
            return None
        return replace(self.row, f"{source_text(self.row)}.clone()")


def shared_buffers(story: Story) -> Iterator[SharedBuffer]:
    """Yield where rows that share one memory become a batch, in the loops or in a collation."""
    runs = [x.events for x in story.execution.examples]
    for events in (story.events, *runs):
        fills = _fills(events)
        for event in events if fills else ():
            found = _shared(event, fills)
            if found is not None:
                yield found
    for example in story.execution.examples:
        found = _handed_out(story, example.value, example.events)
        if found is not None:
            yield found


def _fills(events: Sequence[ProgramEvent]) -> dict[int, list[ProgramEvent]]:
    """What writes other numbers into each buffer, in a loop."""
    found: dict[int, list[ProgramEvent]] = {}
    for event in events:
        buffer = _filled(event)
        if buffer is not None and event.turns:
            found.setdefault(id(buffer), []).append(event)
    return found


def _filled(event: ProgramEvent) -> Value | None:
    """The buffer that an event writes data into, from its beginning."""
    if event.act is EventForm.STORE and event.name == "[]" and event.args:
        is_constant = isinstance(event.args[0], Known)
        is_start = len(event.args) < 2 or _is_from_start(event.args[1])
        return None if is_constant or not is_start else event.receiver
    if event.name not in FILLS or not event.args:
        return None
    return event.receiver if event.receiver is not None else event.args[0]


def _is_from_start(key: Value) -> bool:
    """Tell whether a subscript is `:` or `:n`: the next row is written to the same place."""
    if isinstance(key, Items) and key.kind == "tuple":
        return bool(key.members) and all(_is_from_start(k) for k in key.members)
    if isinstance(key, Known):
        return key.value is Ellipsis
    is_slice = isinstance(key, Result) and key.maker == "builtins.slice" and bool(key.args)
    low = key.args[0] if is_slice and isinstance(key, Result) else None
    return isinstance(low, Known) and low.value in (None, 0)


def _shared(event: ProgramEvent, fills: dict[int, list[ProgramEvent]]) -> SharedBuffer | None:
    """What an event stacks, where all rows are one buffer that a loop fills again and again."""
    operation = operation_of(event.result)
    if operation is None or operation.name.rsplit(".", 1)[-1] not in STACKS:
        return None
    rows = operation.operands[0] if operation.operands else None
    members = rows.members if isinstance(rows, Items) else []
    buffers = {id(memory_of(m)) for m in members}
    if len(members) < 2 or len(buffers) != 1:
        return None
    for fill in fills.get(buffers.pop(), ()):
        is_again = event.order > fill.order and fill.turns[-1] not in event.turns
        if is_again and fill.turns[-1].number > 0:
            return SharedBuffer(members[0], fill, event)
    return None


def _handed_out(
    story: Story, example: Value | None, events: Sequence[ProgramEvent]
) -> SharedBuffer | None:
    """An example that is a buffer of its dataset, which the next example overwrites."""
    collates = any(e.name.endswith("collate") or e.name == "collate_fn" for e in events)
    values = list(example.inputs) if isinstance(example, (Items, Table)) else [example]
    made = {id(e.result) for e in events}
    for value in values if not collates else ():
        buffer = None if value is None else memory_of(value)
        for event in events:
            is_fill = isinstance(buffer, Result) and _filled(event) is buffer
            if is_fill and id(buffer) not in made and buffer in story.values and value is not None:
                return SharedBuffer(value, event, event)
    return None


def memory_of(value: Value, depth: int = 12) -> Value:
    """Return the array whose memory a value looks at; itself where it has its own."""
    operation = operation_of(value)
    if depth == 0 or operation is None or not operation.operands:
        return value
    name = operation.name.rsplit(".", 1)[-1]
    is_start = name == "getitem" and _is_from_start(operation.operands[1])
    return memory_of(operation.operands[0], depth - 1) if name in VIEWS or is_start else value
