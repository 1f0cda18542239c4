"""In which order the rows of tables stand: as they were read, sorted, or grouped by a key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Known, Part, Result, Value
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# what leaves the rows of a table where they are
KEEPS = frozenset(
    {"fillna", "to_numpy", "astype", "drop", "reset_index", "copy", "rename", "assign", "join",
     "float", "clip", "round", "agg", "aggregate", "mean", "sum", "size", "count", "max", "min",
     "std", "median", "first", "last", "nunique", "apply", "abs", "log1p", "log", "sqrt", "sub",
     "div", "mul", "add", "get", "to_frame", "squeeze", "get_dummies", "pivot"}
)  # fmt: skip
SORTS = frozenset({"sort_values", "sort_index"})
DEEP = 40


class TableOrder(Enum):
    """The order of the rows of a table."""

    BY_KEY = "sorted by a key"  # sorted, or grouped, which sorts
    AS_READ = "in the order of the file"


@dataclass(frozen=True, eq=False)
class OrderedRows:
    """Rows of a table, and what put them into their order."""

    order: TableOrder
    value: Result


@dataclass(frozen=True, eq=False)
class UnpairedRows:
    """Inputs and labels that are paired by position and whose rows stand in two orders."""

    inputs: OrderedRows
    labels: OrderedRows


def rows_of(value: Value) -> OrderedRows | None:
    """Return in which order the rows of a value stand; None where that is not in sight."""
    for _ in range(DEEP):
        value = whole_tensor(value)
        if isinstance(value, Part):
            if value.key in ("loc", "iloc", "T"):
                return None
            value = value.of
            continue
        if not isinstance(value, Result):
            return None
        last = value.maker.rsplit(".", 1)[-1]
        if value.receiver is not None and (last in SORTS or last == "groupby"):
            return None if _is_unsorted(value) else OrderedRows(TableOrder.BY_KEY, value)
        if value.maker.startswith("pandas.read_"):
            return OrderedRows(TableOrder.AS_READ, value)
        below = _table_below(value, last)
        if below is None:
            return None
        value = below
    return None


def _is_unsorted(made: Result) -> bool:
    given = made.kwargs.get("sort")
    return isinstance(given, Known) and given.value is False


def _table_below(value: Result, last: str) -> Value | None:
    """Return the table that a step is done to, where it leaves its rows in their order."""
    if value.maker == "operator.getitem":
        return value.args[0]
    operation = operation_of(value)
    name = last if operation is None else operation.name.rsplit(".", 1)[-1]
    if last not in KEEPS and name not in KEEPS:
        return None
    if value.receiver is not None:
        return value.receiver
    return value.args[0] if value.args else None


def unpaired_rows(story: Story) -> Iterator[UnpairedRows]:
    """Yield the tensors of a dataset of which some stand by a key, and labels as they were read."""
    for event in story.events:
        made = event.result
        is_set = isinstance(made, Result) and made.maker.endswith(".TensorDataset")
        if not is_set or not isinstance(made, Result) or len(made.args) < 2:
            continue
        first, second = (rows_of(v) for v in made.args[:2])
        if first is not None and second is not None and first.order is not second.order:
            yield UnpairedRows(first, second)
