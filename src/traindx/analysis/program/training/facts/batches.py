"""What a part of a batch is made of: the example of a dataset, or what a collate function makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.examples import is_loader, is_trainer, settings_of
from traindx.analysis.program.execution.iteration import wrapped
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

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

MAX_DEPTH = 4


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A value of one example, of which a batch stacks several, or a whole batch of it."""

    value: Value
    is_stacked: bool
    loader: Value


def drawn(story: Story, value: Value) -> Drawn | None:
    """Return what a batch of a loader, or a part of one, is made of; None where it is no batch."""
    keys: list[object] = []
    while isinstance(value, Part) and len(keys) < MAX_DEPTH:
        keys.insert(0, value.key)
        value = value.of
    if not isinstance(value, Result) or value.maker != "builtins.next" or not value.args:
        return None
    loader = wrapped(value.args[0])
    if not (is_loader(loader) or is_trainer(loader)):
        return None
    example = next((x for x in story.execution.examples if x.loader is loader), None)
    found = None if example is None else example.value
    for key in keys:
        found = None if found is None else _member(found, key)
    if found is None or example is None or any(_is_collate(e.name) for e in example.events):
        return None
    given = settings_of(loader)
    return Drawn(found, _stacks(given.get("collate_fn"), given.get("batch_size", Known(1))), loader)


def _is_collate(name: str) -> bool:
    """Tell whether an event stacks rows that are followed as one of them."""
    return name.endswith("default_collate")


def _stacks(collate: Value | None, batch_size: Value) -> bool:
    """Tell whether rows are stacked as they are; without a batch size, rows come one by one."""
    is_default = collate is None or (isinstance(collate, Known) and collate.value is None)
    return is_default and not (isinstance(batch_size, Known) and constant(batch_size) is None)


def _member(value: Value, key: object) -> Value | None:
    if isinstance(value, Choice):
        found = [_member(option, key) for option in value.options]
        known = [f for f in found if f is not None]
        return Choice(tuple(known)) if known and len(known) == len(found) else None
    return value.fields.get(key) if isinstance(value, (Items, Table)) else None
