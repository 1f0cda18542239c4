"""Whether a value is true, where the source decides it."""

from __future__ import annotations

from traindx.analysis.program.execution.values import (
    Choice,
    ClassValue,
    FunctionValue,
    Instance,
    Items,
    Known,
    Table,
    Value,
)


def truth_of(value: Value) -> bool | None:
    """Return whether a value is true; None where the source does not decide it."""
    if isinstance(value, Known):
        return bool(value.value)
    if isinstance(value, (FunctionValue, ClassValue)):
        return True
    if isinstance(value, Instance):
        return None if value.cls.foreign else True
    if isinstance(value, (Items, Table)):
        return bool(value.fields) if value.is_whole or value.fields else None
    if isinstance(value, Choice):
        found = {truth_of(o) for o in value.options}
        return found.pop() if len(found) == 1 else None
    return None


def is_none(value: Value) -> bool | None:
    """Return whether a value is None; None where the source does not decide it."""
    if isinstance(value, Known):
        return value.value is None
    if isinstance(value, (FunctionValue, ClassValue, Instance, Items, Table)):
        return False
    if isinstance(value, Choice):
        found = {is_none(o) for o in value.options}
        return found.pop() if len(found) == 1 else None
    return None
