"""Features that hold statistics of the targets by group, of rows that are held out later too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm
from traindx.analysis.program.execution.values import (
    Choice,
    Items,
    Part,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import feeds, is_index
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.claims import Where
    from traindx.analysis.program.training.program import Story

STATISTICS = frozenset({"mean", "median", "sum", "nanmean", "average"})
BY_NAME = (".transform", ".agg", ".aggregate")
TESTS = frozenset({"eq", "isin", "ge", "gt", "le", "lt"})
FAR = 4000
VIEWS = ("values", "array", "iloc", "loc")
SAME_ROWS = frozenset({".reset_index", ".copy", ".to_numpy", ".astype", ".set_index"})
ROWS = frozenset({".sample", ".query", ".head", ".tail", ".drop", ".take"})  # some of the rows


@dataclass(frozen=True, eq=False)
class EncodedTarget:
    """A statistic of all targets by group that has a part in the features of some rows."""

    statistic: Value
    pair: Where  # what takes features and targets side by side


@dataclass(eq=False)
class _Uncut:
    """What the targets of some rows are cut out of: arrays, and columns of tables."""

    values: set[int] = field(default_factory=set)
    columns: set[tuple[int, object]] = field(default_factory=set)


def encoded_targets(story: Story) -> Iterator[EncodedTarget]:
    """Yield where a dataset of some rows has features with statistics of the targets of all."""
    for features, targets, place in _pairs(story):
        uncut = _uncut(targets)
        own = {id(v) for v in origins(targets, FAR)} if uncut.values or uncut.columns else set()
        for value in _made_of(story, features) if own else ():
            is_found = isinstance(value, Result) and id(value) not in own
            if is_found and isinstance(value, Result) and _is_of_targets(value, uncut):
                yield EncodedTarget(value, place)
                break


def _pairs(story: Story) -> Iterator[tuple[Value, Value, Where]]:
    """Features and targets that a dataset gives side by side."""
    for event in story.events:
        if event.name.endswith(".TensorDataset") and len(event.args) == 2:
            yield event.args[0], event.args[1], event
    for feed in feeds(story):
        example = None if feed.example is None else feed.example.value
        if isinstance(example, Items) and len(example.members) == 2:
            yield example.members[0], example.members[1], feed.loader


def _uncut(targets: Value) -> _Uncut:
    """Follow targets back to what they were cut out of, or split off."""
    found = _Uncut()
    value, is_cut, key = targets, False, None
    for _ in range(30):
        value = whole_tensor(value)
        if is_cut:
            found.values.add(id(value))
            if key is not None:
                found.columns.add((id(value), key))
        step = _step(value)
        if step is None:
            return found
        value, cuts, column = step
        is_cut, key = is_cut or cuts, column or key
        if column is not None and is_cut:
            found.columns.add((id(value), column))
    return found


def _step(value: Value) -> tuple[Value, bool, object] | None:
    """What a value is a view, a column or some rows of; whether rows, and which column."""
    if isinstance(value, Part) and isinstance(value.of, Result):
        made = value.of
        if made.maker.endswith("train_test_split") and isinstance(value.key, int):
            at = value.key // 2
            return (made.args[at], True, None) if at < len(made.args) else None
        return made, False, None if value.key in VIEWS else value.key
    if isinstance(value, Part):
        return value.of, False, None if value.key in VIEWS else value.key
    if isinstance(value, Result) and value.receiver is not None and value.maker in SAME_ROWS | ROWS:
        return value.receiver, value.maker in ROWS, None
    if isinstance(value, Result) and value.maker == "operator.getitem":
        key = constant(value.args[1])
        is_name, is_one = isinstance(key, str), is_index(value.args[1])
        return value.args[0], not is_name and not is_one, key if is_name else None
    return None


def _made_of(story: Story, value: Value) -> Iterator[Value]:
    """Yield what features are made of, with the columns that are written into their tables."""
    stored = story.recall(_stored)
    pending, seen = [value], {id(value)}
    while pending and len(seen) < FAR:
        found = pending.pop()
        yield found
        for below in (*found.inputs, *stored.get(id(found), ())):
            if id(below) not in seen:
                seen.add(id(below))
                pending.append(below)


def _stored(story: Story) -> dict[int, list[Value]]:
    found: dict[int, list[Value]] = {}
    for event in story.events:
        if event.act is EventForm.STORE and event.name == "[]" and event.receiver is not None:
            found.setdefault(id(event.receiver), []).extend(event.args[:1])
    return found


def _is_of_targets(value: Result, uncut: _Uncut) -> bool:
    """Tell whether a value is a statistic of uncut targets by group."""
    operation = operation_of(value)
    if operation is None or not operation.operands:
        return False
    name, first = operation.name.rsplit(".", 1)[-1], operation.operands[0]
    if name == "bincount":
        weights = operation.settings.get("weights") or (operation.operands[1:2] or (None,))[0]
        return weights is not None and id(whole_tensor(weights)) in uncut.values
    if value.maker in BY_NAME:
        given = [*value.args[:1], *value.kwargs.values()]
        asked = [m for v in given for m in (v.inputs if isinstance(v, Items) else [v])]
        is_asked = any(constant(v) in STATISTICS for v in asked)
        return is_asked and _is_grouped(first, uncut)
    return name in STATISTICS and (_is_grouped(first, uncut) or _is_selected(first, uncut))


def _is_grouped(value: Value, uncut: _Uncut) -> bool:
    """`table.groupby("city")["price"]`, of a table that is split later."""
    grouped, key = None, None
    if isinstance(value, Part):
        grouped, key = value.of, value.key
    elif isinstance(value, Result) and value.maker == "operator.getitem":
        grouped, key = value.args[0], constant(value.args[1])
    if isinstance(grouped, Result) and grouped.maker == ".groupby" and grouped.receiver is not None:
        return (id(grouped.receiver), key) in uncut.columns
    if isinstance(value, Result) and value.maker == ".groupby" and value.receiver is not None:
        return id(value.receiver) in uncut.values or _is_column(value.receiver, uncut)
    return False


def _is_column(value: Value, uncut: _Uncut) -> bool:
    step = _step(value)
    return step is not None and not step[1] and (id(step[0]), step[2]) in uncut.columns


def _is_selected(value: Value, uncut: _Uncut) -> bool:
    """`targets[city == c]`: those of one group."""
    if not isinstance(value, Result) or value.maker != "operator.getitem":
        return False
    whole, key = whole_tensor(value.args[0]), value.args[1]
    options = key.options if isinstance(key, Choice) else (key,)
    tests = [operation_of(o) for o in options]
    is_test = all(t is not None and t.name in TESTS for t in tests)
    return is_test and (id(whole) in uncut.values or _is_column(whole, uncut))
