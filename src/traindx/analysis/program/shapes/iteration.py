"""What a loop or a comprehension goes through, where that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx.analysis.program.shapes.values import (
    DICTS,
    Record,
    Ref,
    Shape,
    ShapedTensor,
    SizesOf,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.shapes.machine import ShapeMachine

MAX_ITEMS = 2000


def items_of(m: ShapeMachine, value: Value) -> list[Value] | None:
    """Return the members of anything that can be iterated; None where they are not known."""
    if isinstance(value, range):
        return list(value) if len(value) <= MAX_ITEMS else None
    if isinstance(value, str):
        return list(value)
    if isinstance(value, SizesOf):
        return None if value.tensor.shape.is_open else list(value.tensor.shape.sizes)
    if isinstance(value, ShapedTensor):
        return _rows(value)
    if isinstance(value, Ref) and m.memory.read(value).kind == "object":
        return children(m, m.memory.read(value))
    return m.memory.items(value)


def children(m: ShapeMachine, record: Record) -> list[Value] | None:
    """Return the layers of an object whose class derives from Sequential or ModuleList."""
    inner = record.fields.get("__children__")
    return m.memory.items(inner) if isinstance(inner, Ref) else None


def _rows(tensor: ShapedTensor) -> list[Value] | None:
    sizes = tensor.shape.sizes
    if tensor.shape.is_open or not sizes or not isinstance(sizes[0], int) or sizes[0] > MAX_ITEMS:
        return None
    return [ShapedTensor(Shape(sizes[1:])) for _ in range(sizes[0])]


def pairs_of(m: ShapeMachine, value: Value) -> list[tuple[object, Value]] | None:
    """Return the keys and values of a dictionary."""
    if isinstance(value, Ref):
        record = m.memory.read(value)
        if record.kind in DICTS and record.is_whole:
            return list(record.fields.items())
    return None
