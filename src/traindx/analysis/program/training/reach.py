"""What has hold of a value: directly, in a list, in an object, bound to a function."""

from __future__ import annotations

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

DEPTH = 3  # lists in lists, objects in objects


def is_given(event: ProgramEvent, value: Value) -> bool:
    """Tell whether an event has a value among its arguments, or inside of one."""
    return any(is_held(a, value) for a in (*event.args, *event.kwargs.values()))


def is_held(holder: Value, value: Value, depth: int = DEPTH) -> bool:
    """Tell whether a value is another, or has it inside."""
    if holder is value:
        return True
    if depth == 0:
        return False
    if isinstance(holder, (Choice, Items, Table, Generator, PartialCall)):
        return any(is_held(v, value, depth - 1) for v in holder.inputs)
    if isinstance(holder, Method):
        return is_held(holder.receiver, value, depth - 1)
    if isinstance(holder, Instance):
        return any(is_held(v, value, depth - 1) for v in holder.fields.values())
    if isinstance(holder, FunctionValue):
        return holder.bound is not None and is_held(holder.bound, value, depth - 1)
    return False
