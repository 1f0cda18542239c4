"""How many there are of something that only the data decide, and how far numbers reach in it.

Counts are sizes over symbols: the highest of `i + 1 for i, c in enumerate(chars)` is `len(chars)`,
however many there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx.analysis.program.execution.iteration import COUNTED, FIRST_NUMBER, wrapped
from traindx.analysis.program.execution.values import (
    Choice,
    Items,
    Known,
    Part,
    Result,
    Table,
    Value,
    constant,
)
from traindx.analysis.program.shapes.sizes import Dim, is_dim, symbol
from traindx.analysis.program.training.facts.batches import drawn
from traindx.analysis.program.training.facts.drawn_constants import constants_in
from traindx.analysis.program.training.facts.ranges import SAME
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

DEEP = 40
COPIES = frozenset({"builtins.sorted", "builtins.list", "builtins.tuple", "builtins.reversed"})
DISTINCT = frozenset({"builtins.set", "numpy.unique", "builtins.frozenset", "torch.unique"})
WHOLE = frozenset({"builtins.int", ".item", "numpy.int64"})


def count_of(story: Story, value: Value | None, depth: int = DEEP) -> Dim | None:
    """Return a whole number, over the sizes of what the program counts."""
    if value is None or depth == 0:
        return None
    number = constant(value)
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    if not isinstance(value, Result):
        return None
    if value.maker == "builtins.len" and value.args:
        return length_of(story, value.args[0])
    if value.maker in (".max", "builtins.max", "numpy.max") and len(value.inputs) == 1:
        return _maximum(value.inputs[0])
    if value.maker in WHOLE and value.inputs:
        return count_of(story, value.inputs[0], depth - 1)
    if value.maker in ("operator.add", "operator.sub"):
        left, right = (count_of(story, v, depth - 1) for v in value.args)
        if left is None or right is None:
            return None
        return left + right if value.maker == "operator.add" else left - right
    return None


def length_of(story: Story, value: Value) -> Dim:
    """Return how many members a collection has."""
    while isinstance(value, Result) and value.maker in COPIES and value.args:
        value = value.args[0]
    if isinstance(value, (Items, Table)) and value.is_whole:
        return len(value.fields)
    if isinstance(value, Result) and value.maker in DISTINCT and value.args:
        found = constants_in(value.args[0])
        if found:
            return len(found)
    if isinstance(value, Table):
        held = _entries(value)
        over = [n for v in held if (n := _numbered(_without_shift(v))) is not None]
        if over and len(over) == len(held):
            return length_of(story, over[0])
    shape = story.shapes.shape(value)
    if shape is not None and not shape.is_open and shape.sizes:
        return shape.sizes[0]
    return symbol(f"len{id(value)}")


def highest_of(story: Story, value: Value, depth: int = DEEP) -> Dim | None:
    """Return the highest whole number that surely is among some."""
    if depth == 0:
        return None
    if isinstance(value, Known):
        return count_of(story, value)
    if isinstance(value, (Choice, Items, Table)):
        parts = value.options if isinstance(value, Choice) else _members(value)
        return _highest([highest_of(story, v, depth - 1) for v in parts])
    if isinstance(value, (Part, Result)):
        batch = drawn(story, value)
        if batch is not None:
            return highest_of(story, batch.value, depth - 1)
    if isinstance(value, Part):
        is_entry = isinstance(value.of, Table) and bool(value.of.open_keys)
        return highest_of(story, value.of, depth - 1) if is_entry else _column_end(value)
    return _computed(story, value, depth) if isinstance(value, Result) else None


def _members(value: Value) -> list[Value]:
    return _entries(value) if isinstance(value, Table) else list(value.inputs)


def _entries(table: Table) -> list[Value]:
    """Return the values of a dictionary, without what was asked of keys that are not known."""
    return [v for k, v in table.fields.items() if not isinstance(k, tuple)]


def _computed(story: Story, value: Result, depth: int) -> Dim | None:
    over = _numbered(value)
    if over is not None:
        return length_of(story, over) - 1 + _first_number(value)
    operation = operation_of(value)
    if operation is None or not operation.operands:
        return None
    name, first = operation.name.rsplit(".", 1)[-1], operation.operands[0]
    if name in ("add", "sub") and len(operation.operands) == 2:
        found, by = highest_of(story, first, depth - 1), constant(operation.operands[1])
        if found is None or type(by) is not int:
            return None
        return found + by if name == "add" else found - by
    if name in SAME or name in ("next", "pad_sequence"):
        return highest_of(story, first, depth - 1)
    return None


def _highest(found: list[Dim | None]) -> Dim | None:
    """Return the highest of several; what the data decide is above what the source gives."""
    known = [f for f in found if f is not None]
    if not known or len(known) != len(found):
        return None
    open_ends = [f for f in known if not isinstance(f, int)]
    best = (open_ends or known)[0]
    for other in open_ends or known:
        difference = other - best
        if not isinstance(difference, int):
            return None
        best = other if difference > 0 else best
    return best


def _numbered(value: Value) -> Value | None:
    """Return what `enumerate` numbers, where a value is such a number."""
    over = value.args[0] if isinstance(value, Result) and value.maker == "builtins.next" else None
    is_known = over is not None and isinstance(constant(over.fields.get(FIRST_NUMBER)), int)
    found = over.fields.get(COUNTED) if over is not None and is_known else None
    return None if found is None else wrapped(found)


def _first_number(value: Result) -> int:
    """Return what `enumerate` counts from."""
    first = constant(value.args[0].fields.get(FIRST_NUMBER))
    return first if isinstance(first, int) else 0


def _without_shift(value: Value) -> Value:
    """Return `i` of `i + 1`."""
    is_shift = isinstance(value, Result) and value.maker == "operator.add" and len(value.args) == 2
    return value.args[0] if isinstance(value, Result) and is_shift else value


def _column_end(value: Part) -> Dim | None:
    """Return the highest number of a column of a table, a symbol by the name of the column."""
    if value.key == "values":
        return _maximum(value.of)
    return None


def _maximum(column: Value) -> Dim | None:
    """Return the symbol of the highest number in a column that is read from a file."""
    if isinstance(column, Part) and column.key == "values":
        column = column.of
    if isinstance(column, Part) and isinstance(column.key, str):
        return symbol(f"max{id(column.of)}{column.key}")
    is_item = isinstance(column, Result) and column.maker == "operator.getitem"
    key = constant(column.args[1]) if isinstance(column, Result) and is_item else None
    if isinstance(column, Result) and isinstance(key, str):
        return symbol(f"max{id(column.args[0])}{key}")
    return None


def beyond(high: object, size: object) -> int | None:
    """Return by how much the highest index misses the last place; None where it fits or may fit."""
    if not is_dim(high) or not is_dim(size):
        return None
    over = high - size
    return over + 1 if isinstance(over, int) and over >= 0 else None
