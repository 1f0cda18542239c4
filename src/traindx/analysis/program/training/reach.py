"""What has hold of a value: directly, in a list, in an object, bound to a function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Choice,
    FunctionValue,
    Generator,
    Instance,
    Items,
    Method,
    PartialCall,
    Table,
    Value,
)

HOLDERS = (Choice, Items, Table, Generator, PartialCall, Method, Instance, FunctionValue)
DEPTH = 3  # lists in lists, objects in objects


def is_given(event: ProgramEvent, value: Value) -> bool:
    """Tell whether an event has a value among its arguments, or inside of one."""
    return any(is_held(a, value) for a in (*event.args, *event.kwargs.values()))


def is_held(holder: Value, value: Value, depth: int = DEPTH) -> bool:
    """Tell whether a value is another, or has it inside."""
    if holder is value:
        return True
    return depth > 0 and any(is_held(v, value, depth - 1) for v in _directly_in(holder))


def held_by(holder: Value) -> Iterator[Value]:
    """Yield a value and everything that it has inside, each once."""
    seen, level = {id(holder): holder}, [holder]
    for _ in range(DEPTH):
        below = {id(v): v for h in level for v in _directly_in(h) if id(v) not in seen}
        seen.update(below)
        level = list(below.values())
    yield from seen.values()


def is_simple(value: Value) -> bool:
    """Tell whether a value is of a sort that has nothing inside."""
    return not isinstance(value, HOLDERS)


def _directly_in(holder: Value) -> Iterable[Value]:
    if isinstance(holder, (Choice, Items, Table, Generator, PartialCall)):
        return holder.inputs
    if isinstance(holder, Method):
        return (holder.receiver,)
    if isinstance(holder, Instance):
        return holder.fields.values()
    if isinstance(holder, FunctionValue) and holder.bound is not None:
        return (holder.bound,)
    return ()
