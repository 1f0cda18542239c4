"""Whether a mask of padding may cover a whole row: a sequence of length zero."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, Guard, ProgramEvent
from traindx.analysis.program.execution.values import (
    Choice,
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    depends_on,
    options_of,
)
from traindx.analysis.program.training.facts.batches import drawn
from traindx.analysis.program.training.operations import operation_name, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# what keeps in a mask or in padded numbers which of their rows are empty
SAME = frozenset(
    {"invert", "logical_not", "getitem", "unsqueeze", "expand", "view", "reshape", "bool", "to",
     "cuda", "cpu", "float", "long", "int", "transpose", "repeat", "detach", "clone", "stack",
     "tensor", "as_tensor", "from_numpy", "sub", "rsub", "contiguous", "repeat_interleave", "type"}
)  # fmt: skip
TESTS = frozenset({"eq", "ne", "gt", "lt", "ge", "le"})
BLANK = frozenset({"zeros", "full", "zeros_like", "empty", "new_zeros"})
DEEP = 14


def empty_length(story: Story, mask: Value | None, depth: int = DEEP) -> Value | None:
    """Return the length that may be zero where a mask then covers a whole row; else None."""
    if mask is None or depth == 0:
        return None
    batch = drawn(story, mask)
    if batch is not None:
        return empty_length(story, batch.value, depth - 1)
    if isinstance(mask, Choice):
        return None
    operation = operation_of(mask)
    if operation is None or not operation.operands:
        return None
    name = operation.name.rsplit(".", 1)[-1]
    if name not in BLANK and _is_changed(story, mask):
        return None
    if name in TESTS and len(operation.operands) == 2:
        return _compared(story, *operation.operands, depth)
    if name == "mul" and len(operation.operands) == 2:
        found = (empty_length(story, v, depth - 1) for v in operation.operands)
        return next((f for f in found if f is not None), None)
    if name in BLANK:
        return _written(story, mask)
    if name == "sub" and not isinstance(operation.operands[0], Known):
        return None
    at = 1 if name == "sub" and len(operation.operands) > 1 else 0
    if name not in SAME:
        return None
    first = operation.operands[at]
    inside = first.members[0] if isinstance(first, Items) and first.fields else first
    return empty_length(story, inside, depth - 1)


def _compared(story: Story, left: Value, right: Value, depth: int) -> Value | None:
    """`positions < lengths`, or `tokens == padding`."""
    for positions, lengths in ((left, right), (right, left)):
        if _is_counter(positions) and _reaches_zero(story, lengths):
            return lengths
    if constant(right) in (0, False) and not isinstance(left, Known):
        return empty_length(story, left, depth - 1)
    return None


def _is_counter(value: Value) -> bool:
    for _ in range(DEEP):
        operation = operation_of(value)
        if operation is None or not operation.operands:
            return False
        if operation.name.rsplit(".", 1)[-1] == "arange":
            return True
        if operation.name not in SAME:
            return False
        value = operation.operands[0]
    return False


def _reaches_zero(story: Story, value: Value) -> bool:
    reached = story.ranges.of(value)
    return reached is not None and reached.low == 0 and reached.high > 0


def _is_changed(story: Story, mask: Value) -> bool:
    """Tell whether something is written into a mask, which may open a place of each row."""
    return any(_stores(story, mask))


def _stores(story: Story, written: Value) -> Iterator[ProgramEvent]:
    for event in (*story.index.on(written), *story.drawn.on(written)):
        is_in_place = event.name.endswith("_") and not event.name.endswith("__")
        if event.act is EventForm.STORE or is_in_place:
            yield event


def _written(story: Story, blank: Value) -> Value | None:
    """Return the length of what is written into the front of blank rows, if it may be zero."""
    found = list(_stores(story, blank))
    if len({e.node for e in found}) != 1:
        return None
    key = found[0].args[1] if len(found[0].args) > 1 else None
    last = key.members[-1] if isinstance(key, Items) and key.fields else key
    if not isinstance(last, Result) or last.maker != "builtins.slice":
        return None
    start, stop = last.args[0], last.args[1]
    asked = next((t for t in map(_asked_length, found[0].guards) if t is not None), None)
    if asked is not None and any(depends_on(bound, asked) for bound in (start, stop)):
        return asked  # who asks whether there is anything to write expects that there is nothing
    is_front = constant(start) in (None, 0) and isinstance(start, Known)
    return _zero_stop(story, stop) if is_front else None


def _asked_length(guard: Guard) -> Value | None:
    """Return the list that a condition asks to be not empty: `if rows:`, `if len(rows) > 0:`."""
    test = guard.true_test
    if isinstance(test, Result) and operation_name(test.maker) in ("gt", "ne", "ge") and test.args:
        test = test.args[0]
    if isinstance(test, Result) and test.maker == "builtins.len" and test.args:
        return test.args[0]
    return test if isinstance(test, (Items, Part)) else None


def _zero_stop(story: Story, stop: Value) -> Value | None:
    if _reaches_zero(story, stop):
        return stop
    if not isinstance(stop, Result) or stop.maker != "builtins.len" or not stop.args:
        return None
    for held in options_of(stop.args[0]):
        if isinstance(held, Items) and _is_counted_from_zero(story, held):
            return stop
        size = held.kwargs.get("size") if isinstance(held, Result) else None
        is_drawn = isinstance(held, Result) and operation_name(held.maker) in (
            "choice", "integers", "randint", "numpy.random.choice", "numpy.random.randint",
        )  # fmt: skip
        if is_drawn and size is not None and _reaches_zero(story, size):
            return size
    return None


def _is_counted_from_zero(story: Story, held: Items) -> bool:
    """Tell whether a list is filled as often as a number says that may be 0."""
    site = held.site
    for loop in story.loops if site is not None and not held.is_whole else ():
        counted = loop.over
        is_here = site is not None and any(n is loop.site.node for n in ast.walk(site.node))
        is_range = isinstance(counted, Result) and counted.maker == "builtins.range"
        if is_here and is_range and isinstance(counted, Result) and len(counted.args) == 1:
            return _reaches_zero(story, counted.args[0])
    return False
