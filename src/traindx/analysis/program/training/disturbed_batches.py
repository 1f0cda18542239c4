"""What a loader takes from its dataset and changes at random: holes, noise, gain, random moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import Items, Known, Part, Result, Unknown, Value
from traindx.analysis.program.training.data import ARITHMETIC, MOVES, draws_in, seeded_draws
from traindx.analysis.program.training.operations import operation_name

if TYPE_CHECKING:
    from traindx.analysis.program.execution.examples import Example

BLANK = frozenset({"zeros", "ones", "empty", "full", "zeros_like", "new_zeros", "arange"})
SHAPES = frozenset({"len", "size", "shape", "dim", "ndim", "numel"})  # tell nothing of the values
DEEP = 400


def disturbed_batch(example: Example) -> Value | None:
    """Return what changes the input of an example at random, where the dataset gave it.

    Where the target is made of what was changed, or of the same draws, the change is the task.
    """
    value = example.value
    if not isinstance(value, Items) or len(value.fields) < 2:
        return None
    seeded = seeded_draws(example.events)
    fresh = {id(e.result) for e in draws_in(example.events)} - seeded
    made = {id(e.result) for e in example.events if e.result is not None}
    given, *wanted = (_Batch(member, example, made) for member in value.members)
    if not fresh or any(w.known & fresh or w.taken & given.taken for w in wanted):
        return None
    changes = (e for e in example.events if _is_change(e, given, fresh))
    found = next(changes, None)
    if found is None:
        return None
    return found.receiver if found.act is EventForm.STORE else found.result


class _Batch:
    """A part of a batch: the values in it, and those that it takes from the dataset."""

    def __init__(self, value: Value, example: Example, made: set[int]) -> None:
        stores: dict[int, list[ProgramEvent]] = {}
        for event in example.events:
            if event.act is EventForm.STORE and event.receiver is not None:
                stores.setdefault(id(event.receiver), []).append(event)
        self.known: set[int] = set()
        self.taken: set[int] = set()
        pending = [value]
        while pending and len(self.known) < DEEP:
            found = pending.pop()
            if id(found) in self.known:
                continue
            self.known.add(id(found))
            pending += [s.args[0] for s in stores.get(id(found), ()) if s.args]
            if is_taken(found, made):
                self.taken.add(id(found))
            elif not _tells_shape(found):
                pending += found.inputs


def is_taken(value: Value, made: set[int]) -> bool:
    """Tell whether a value was there before the example was asked for, and holds data."""
    is_data = isinstance(value, (Part, Result)) and id(value) not in made
    is_plain = isinstance(value, Part) and isinstance(value.key, str)
    return is_data and not is_plain and not _is_blank(value) and not isinstance(value, Unknown)


def _is_blank(value: Value) -> bool:
    return isinstance(value, Result) and operation_name(value.maker) in (BLANK | SHAPES)


def _tells_shape(value: Value) -> bool:
    name = value.maker.rsplit(".", 1)[-1] if isinstance(value, Result) else ""
    return (
        name in SHAPES
        or name.endswith("_like")
        or (isinstance(value, Part) and value.key == "shape")
    )


def _is_change(event: ProgramEvent, batch: _Batch, fresh: set[int]) -> bool:
    if event.is_own:
        return False
    if event.act is EventForm.STORE:
        target = event.receiver
        is_placed = len(event.args) > 1 and _meets(event.args[1], fresh)
        is_met = target is not None and id(target) in batch.known
        return is_placed and is_met and target is not None and _holds_taken(target, batch)
    result = event.result
    if result is None or id(result) not in batch.known:
        return False
    name = operation_name(event.name).rsplit(".", 1)[-1]
    operands = [*([] if event.receiver is None else [event.receiver]), *event.args]
    drawn = [v for v in operands if _meets(v, fresh) and not _holds_taken(v, batch)]
    rest = [v for v in operands if not any(v is d for d in drawn)]
    is_mixed = bool(drawn) and any(_holds_taken(v, batch) for v in rest)
    return name in ARITHMETIC | MOVES and is_mixed


def _meets(value: Value, wanted: set[int]) -> bool:
    return any(id(v) in wanted for v in _inside(value))


def _holds_taken(value: Value, batch: _Batch) -> bool:
    return any(id(v) in batch.taken and not isinstance(v, Known) for v in _inside(value))


def _inside(value: Value) -> Iterator[Value]:
    """Yield a value and what its numbers come from, without what only gave it a shape."""
    pending, seen = [value], {id(value)}
    while pending and len(seen) < DEEP:
        found = pending.pop()
        yield found
        for below in () if _tells_shape(found) else found.inputs:
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)
