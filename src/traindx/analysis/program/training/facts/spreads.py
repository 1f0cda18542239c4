"""Where the numbers of data lie and how far they spread, column by column.

An estimate by orders of magnitude, for data whose making is in sight: draws, what is computed of
them, tables put together from columns, and their normalisation. Unknown is None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm
from traindx.analysis.program.execution.values import (
    Choice,
    External,
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
)
from traindx.analysis.program.training.facts import random_spreads, sample_sets
from traindx.analysis.program.training.facts.batches import drawn
from traindx.analysis.program.training.facts.random_spreads import UNIT, Spread
from traindx.analysis.program.training.operations import Operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

Columns = tuple[Spread | None, ...]  # one for all of them where they are alike
# the numbers stay as they are, in the same columns
SAME = frozenset(
    {"contiguous", "clone", "detach", "cuda", "cpu", "to", "type", "tensor", "as_tensor", "array",
     "asarray", "from_numpy", "astype", "numpy", "copy", "pin_memory", "float", "double", "float32",
     "FloatTensor", "Tensor", "permutation", "shuffle", "float64", "nan_to_num", "to_numpy",
     "ascontiguousarray", "round", "int", "long", "floor", "ceil", "item"}
)  # fmt: skip
# what holds for a tensor whose columns are alike, or that has one, in any shape
RESHAPED = frozenset(
    {"view", "reshape", "squeeze", "unsqueeze", "flatten", "ravel", "t", "transpose", "permute",
     "expand", "tolist", "repeat", "cumprod", "expand_dims", "atleast_2d", "unfold"}
)  # fmt: skip
STACKS = frozenset({"stack", "column_stack", "vstack"})
JOINS = frozenset({"cat", "concatenate", "append", "hstack", "vstack"})
STATISTICS = frozenset({"mean", "std", "min", "max", "amin", "amax", "median", "var"})
MAX_WIDTH = 200  # columns of a table that are told apart
FAR = 2.0  # standard deviations from the mean to the lowest and highest, of most data


class Spreads:
    """Where the numbers of the tensors of one story lie."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self._known: dict[Value, Columns | None] = {}
        self._changed = _changed_in_place(story)

    def of(self, value: Value | None) -> Columns | None:
        """Return the spread of each column of a value; None where nothing is known of it."""
        if value is None:
            return None
        if value not in self._known:
            self._known[value] = None  # ends a circle
            self._known[value] = self._unchanged(value, self._found(value))
        return self._known[value]

    def one(self, value: Value | None) -> Spread | None:
        """Return the spread of all numbers of a value together."""
        columns = self.of(value)
        known = [c for c in columns or () if c is not None]
        return mixed(known) if columns and len(known) == len(columns) else None

    def _unchanged(self, value: Value, columns: Columns | None) -> Columns | None:
        """Forget the columns that are changed in place later or before, nobody asks when."""
        views = self._changed.get(id(value))
        if not views or columns is None:
            return columns
        found = list(columns)
        for view in views:
            taken = None if view is value else _taken(view, len(found))
            for place in range(len(found)) if taken is None else taken:
                found[place] = None
        return tuple(found) if any(c is not None for c in found) else None

    def _found(self, value: Value) -> Columns | None:
        if isinstance(value, Known):
            is_number = isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
            return (Spread(float(value.value), 0.0),) if is_number else None  # type: ignore[arg-type]
        if isinstance(value, Choice):
            return _alike([self.of(o) for o in value.options])
        if isinstance(value, Items):
            return self._listed(value)
        batch = drawn(self.story, value) if isinstance(value, (Part, Result)) else None
        if batch is not None:
            return self.of(batch.value)
        if isinstance(value, Part):
            return self._part(value)
        return self._computed(value) if isinstance(value, Result) else None

    def _listed(self, value: Items) -> Columns | None:
        """A list of rows, or one row that is written down."""
        members = value.members
        found = [self.of(m) for m in members]
        if not members or any(f is None for f in found):
            return None
        if value.is_whole and 1 < len(members) <= MAX_WIDTH and all(_is_single(f) for f in found):
            return tuple(f[0] for f in found if f is not None)
        return _alike(found)

    def _part(self, value: Part) -> Columns | None:
        owner = value.of
        if isinstance(owner, Result) and owner.maker.endswith(".train_test_split"):
            at = value.key // 2 if isinstance(value.key, int) else -1
            return self.of(owner.args[at]) if 0 <= at < len(owner.args) else None
        if value.key in ("T", "mT"):
            return self._turned(owner)
        return self.of(owner) if value.key in ("data", "values") else None

    def _turned(self, owner: Value) -> Columns | None:
        """`np.stack([a, b]).T`: rows become columns."""
        operation = operation_of(owner)
        name = "" if operation is None else operation.name.rsplit(".", 1)[-1]
        is_rows = name in ("stack", "vstack", "array", "tensor") and operation is not None
        if is_rows and operation is not None and operation.operands[1:] == () and (
            not {"axis", "dim"} & set(operation.settings)
        ):  # fmt: skip
            listed = operation.operands[0] if operation.operands else None
            return self._side_by_side(listed)
        columns = self.of(owner)
        return columns if _is_single(columns) else None

    def _side_by_side(self, listed: Value | None) -> Columns | None:
        """Columns that are put beside each other, each of numbers that are alike."""
        members = listed.members if isinstance(listed, Items) and listed.is_whole else []
        found = [self.of(m) for m in members]
        if not 1 < len(members) <= MAX_WIDTH or not all(f is None or _is_single(f) for f in found):
            return None
        return tuple(None if f is None else f[0] for f in found)

    def _computed(self, value: Result) -> Columns | None:
        chance = random_spreads.of_draw(value, self.one)
        if chance is not None:
            return (chance,)
        operation = operation_of(value)
        if operation is None or not operation.operands:
            return None
        name, first = operation.name.rsplit(".", 1)[-1], operation.operands[0]
        if name in ("getitem", "next"):
            return self._item(value, first)
        if name in ("fit_transform", "transform") and sample_sets.is_scaler(value.receiver):
            return (UNIT,)
        if name in STATISTICS:
            return self._statistic(name, operation)
        if name in STACKS | JOINS and isinstance(first, Items):
            return self._stacked(name, operation, first)
        if name in ("transpose", "t") and isinstance(value, Result):
            return self._turned(first)
        if name in RESHAPED:
            columns = self.of(first)
            return columns if _is_single(columns) else None
        return self.of(first) if name in SAME else self._arithmetic(name, operation)

    def _arithmetic(self, name: str, operation: Operation) -> Columns | None:
        single = random_spreads.FUNCTIONS.get(name)
        columns = [self.of(v) for v in operation.operands[:2]]
        if single is not None and columns[0] is not None:
            return tuple(None if c is None else single(c) for c in columns[0])
        if name in random_spreads.TESTS:
            return (Spread(0.5, 0.5),)
        pair = random_spreads.ARITHMETIC.get(name.removeprefix("i"), None)
        pair = random_spreads.ARITHMETIC.get(name, pair)
        if pair is None or len(columns) != 2 or columns[0] is None or columns[1] is None:
            return None
        return _paired(pair, columns[0], columns[1])

    def _item(self, value: Result, owner: Value) -> Columns | None:
        if isinstance(owner, External) and owner.name == "numpy.c_":
            return self._side_by_side(value.args[1])
        columns = self.of(owner)
        if columns is None or _is_single(columns):
            return columns
        taken = _taken(value, len(columns))
        return columns if taken is None else tuple(columns[t] for t in taken) or None

    def _stacked(self, name: str, operation: Operation, listed: Items) -> Columns | None:
        given = operation.settings.get("axis") or operation.settings.get("dim")
        axis = constant(given or (operation.operands[1:] or (Known(0),))[0])
        if name == "column_stack" or (name == "stack" and axis in (1, -1)):
            return self._side_by_side(listed)
        if (name in JOINS and axis == 0 and name != "hstack") or name == "stack":
            return _alike([self.of(m) for m in listed.members])
        return None

    def _statistic(self, name: str, operation: Operation) -> Columns | None:
        """The mean, deviation or extreme of each column, or of all numbers at once."""
        given = operation.settings.get("axis") or operation.settings.get("dim")
        given = given or (operation.operands[1:] or (None,))[0]
        columns = self.of(operation.operands[0])
        if given is None and columns is not None:
            whole = self.one(operation.operands[0])
            return None if whole is None else (_extract(name, whole),)
        if constant(given) != 0 or columns is None:
            return None
        return tuple(None if c is None else _extract(name, c) for c in columns)


def _extract(name: str, spread: Spread) -> Spread:
    by = {"std": spread.std, "var": spread.std**2, "min": spread.mean - FAR * spread.std,
          "amin": spread.mean - FAR * spread.std, "max": spread.mean + FAR * spread.std,
          "amax": spread.mean + FAR * spread.std}  # fmt: skip
    return Spread(by.get(name, spread.mean), 0.0)


def _is_single(columns: Columns | None) -> bool:
    return columns is not None and len(columns) == 1


def mixed(spreads: Sequence[Spread]) -> Spread:
    """Return the spread of numbers of several sorts together."""
    mean = sum(s.mean for s in spreads) / len(spreads)
    square = sum(s.std**2 + (s.mean - mean) ** 2 for s in spreads) / len(spreads)
    return Spread(mean, math.sqrt(square))


def _alike(found: Sequence[Columns | None]) -> Columns | None:
    """Rows of several sorts, below one another."""
    known = [f for f in found if f is not None]
    if not known or len(known) != len(found) or len({len(f) for f in known}) != 1:
        return None
    columns = zip(*known, strict=True)
    return tuple(
        None if any(s is None for s in c) else mixed([s for s in c if s is not None])
        for c in columns
    )


def _paired(
    function: Callable[[Spread, Spread], Spread | None], left: Columns, right: Columns
) -> Columns | None:
    width = max(len(left), len(right))
    if {len(left), len(right)} - {1, width}:
        return None
    pairs = zip(left * (width // len(left)), right * (width // len(right)), strict=True)
    found = tuple(None if a is None or b is None else function(a, b) for a, b in pairs)
    return found if any(f is not None for f in found) else None


def _taken(value: Value, width: int) -> list[int] | None:
    """Return the columns that a subscript takes of as many; None where it takes all of them."""
    key = value.args[1] if isinstance(value, Result) and len(value.args) > 1 else None
    keys = key.members if isinstance(key, Items) and key.kind == "tuple" else []
    if len(keys) < 2:
        return None
    last = keys[-1]
    number = constant(last)
    if isinstance(number, int) and -width <= number < width:
        return [number % width]
    if isinstance(last, Items) and last.is_whole:
        several = [constant(m) for m in last.members]
        return [n % width for n in several if isinstance(n, int)]
    if isinstance(last, Result) and last.maker == "builtins.slice":
        found = [constant(a) for a in last.args]
        bounds = [b if isinstance(b, int) else None for b in found]
        is_known = all(isinstance(a, Known) for a in last.args)
        return list(range(width))[slice(*bounds)] if is_known else []
    return None if isinstance(last, Known) and last.value is None else []


def _changed_in_place(story: Story) -> dict[int, list[Value]]:
    """The tensors that are written to, each with the views by which they are: `x[:, :3] -= 1`."""
    written: list[Value] = []
    for value in story.values:
        is_assignment = isinstance(value, Result) and value.maker.startswith("operator.i")
        if is_assignment and isinstance(value, Result) and value.args:
            written.append(value.args[0])
        elif isinstance(value, Result) and "out" in value.kwargs:
            written.append(value.kwargs["out"])
    for event in story.events:
        is_store = event.act is EventForm.STORE and event.name == "[]"
        is_method = event.name.startswith(".") and event.name.endswith("_")
        if event.receiver is not None and (is_store or is_method):
            written.append(event.receiver)
    found: dict[int, list[Value]] = {}
    for view in written:
        whole = view
        while isinstance(whole, Result) and whole.maker == "operator.getitem":
            found.setdefault(id(whole), []).append(whole)
            whole = whole.args[0]
        is_view = whole is not view
        found.setdefault(id(whole), []).append(view if is_view else whole)
    return found
