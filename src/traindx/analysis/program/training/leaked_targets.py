"""Features that hold the targets that are to be predicted from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    depends_on,
    origins,
)
from traindx.analysis.program.training.claims import source_text, statement_text
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import data_chain
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

PAIRS = ("train_test_split", "TensorDataset")  # features first, targets second
WIDE = frozenset({"hstack", "column_stack"})
STACKS = frozenset({"concatenate", "cat", "concat", "append"}) | WIDE
VIEWS = ("values", "array", "T")  # attributes that are the table itself
TAKES_OUT = (".drop", ".pop", "operator.delitem")
TAKES_COLUMNS = frozenset({"delete", "drop", "index_select", "hsplit", "narrow", "take"})
STATISTICS = frozenset({"mean", "sum", "median", "average", "nanmean"})


@dataclass(frozen=True, eq=False)
class _Pair:
    """Features and targets that one call takes side by side, row by row."""

    story: Story
    event: ProgramEvent

    @property
    def features(self) -> Value:
        return self.event.args[0]

    @property
    def targets(self) -> Value:
        return self.event.args[1]


@dataclass(frozen=True, eq=False)
class LeakedTarget:
    """Where features get the targets, in words, and the call that takes both side by side."""

    at: Value | ProgramEvent
    says: str
    pair: ProgramEvent


def leaked_targets(story: Story) -> Iterator[LeakedTarget]:
    """Yield where features hold the values that are to be predicted from them."""
    for event in story.events:
        is_pair = event.name.rsplit(".", 1)[-1] in PAIRS and len(event.args) == 2
        if not is_pair or event.is_own:
            continue
        pair = _Pair(story, event)
        found: tuple[Value | ProgramEvent, str] | None = _whole_table(pair) or _joined(pair)
        if found is not None and _is_cut_later(pair):
            continue
        found = found or _overwritten(pair) or _encoded(pair)
        if found is not None and found[0].site is not None:
            yield LeakedTarget(*found, event)


def _bare(value: Value) -> Value:
    """What a value is, without changes of its type and shape or a new axis."""
    while True:
        inner = whole_tensor(value)
        if isinstance(inner, Part) and inner.key in VIEWS:
            inner = inner.of
        operation = operation_of(inner)
        if operation is not None and operation.name in ("to_frame", "copy") and operation.operands:
            inner = operation.operands[0]
        if isinstance(inner, Result) and inner.maker == "operator.getitem":
            parts = inner.args[1].inputs if isinstance(inner.args[1], Items) else ()
            if any(isinstance(p, Known) and p.value is None for p in parts):
                inner = inner.args[0]
        if inner is value:
            return value
        value = inner


def _whole_table(pair: _Pair) -> tuple[Value, str] | None:
    column, table = _bare(pair.targets), _bare(pair.features)
    if not isinstance(column, Part) or not isinstance(column.key, str) or column.of is not table:
        return None
    if table is pair.features or column.site is None:
        return None  # a table that is split as a whole may have its columns picked later
    for event in pair.story.events:
        owner = event.receiver or (event.args[0] if event.args else None)
        if event.name in TAKES_OUT and owner is table:
            return None
    name = table.called("the table")
    return column, f"`{source_text(column)}` is predicted from all of `{name}`"


def _joined(pair: _Pair) -> tuple[Value, str] | None:
    """The features are a join, along their columns, of which the targets are a part."""
    target, joined = _bare(pair.targets), whole_tensor(pair.features)
    operation = operation_of(joined)
    if operation is None or not operation.operands:
        return None
    last = operation.name.rsplit(".", 1)[-1]
    axis = operation.settings.get("axis") or operation.settings.get("dim")
    if axis is None and len(operation.operands) > 1:
        axis = operation.operands[1]
    is_wide = last in WIDE or constant(axis) in (1, -1)
    parts = operation.operands[0].members if isinstance(operation.operands[0], Items) else []
    if last in STACKS and is_wide and len(parts) > 1 and any(_bare(p) is target for p in parts):
        return joined, f"`{source_text(joined)}` joins the targets with the features"
    return None


def _is_cut_later(pair: _Pair) -> bool:
    """Tell whether columns are picked or left out after features and targets were set side by side.

    That may be in a loop over batches, under any name; the targets have no columns to pick.
    """
    for event in pair.story.events:
        if event.order <= pair.event.order or event.act is EventForm.STORE:
            continue
        if event.name.rsplit(".", 1)[-1] in TAKES_COLUMNS:
            return True
        if event.name == "operator.getitem" and _is_of_columns(event.args[1]):
            return True
    return False


def _is_of_columns(key: Value) -> bool:
    """Tell whether a key picks several columns: `[:, :-1]`, `[:, columns]`, `[["a", "b"]]`."""
    if not isinstance(key, Items):
        return False
    if key.kind == "list":
        return True
    last = key.members[-1] if key.fields else None
    is_new = isinstance(last, Known) and last.value is None
    return len(key.fields) > 1 and not is_new and not isinstance(last, Known)


def _overwritten(pair: _Pair) -> tuple[ProgramEvent, str] | None:
    """A part of the split features gets the values of the split targets."""
    split = pair.event.result
    for event in pair.story.events:
        if event.act is not EventForm.STORE or event.name != "[]" or event.order < pair.event.order:
            continue
        written, given = event.receiver, _bare(event.args[0])
        if not (isinstance(written, Part) and isinstance(given, Part)):
            continue
        if (
            written.of is split
            and given.of is split
            and written.key in (0, 1)
            and given.key in (2, 3)
        ):
            return event, f"`{statement_text(event)}` after the split"
    return None


def _encoded(pair: _Pair) -> tuple[Value, str] | None:
    """Features that hold means of the targets of all rows."""
    if not pair.event.name.endswith("train_test_split"):
        return None
    target = pair.targets
    for value in origins(pair.features):
        operation = operation_of(value)
        if operation is None or operation.name not in STATISTICS or not operation.operands:
            continue
        chain = list(data_chain(pair.story, operation.operands[0]))
        if any(v is target for v in chain) and not depends_on(target, value) and value.site:
            return value, f"`{source_text(value)}` of the targets is computed before the split"
    return None
