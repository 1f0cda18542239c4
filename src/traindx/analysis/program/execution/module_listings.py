"""What `model.modules()` and its kin list, where all that a model is made of is in sight."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.analysis.program.execution import iteration, library
from traindx.analysis.program.execution.values import (
    Choice,
    Instance,
    Items,
    Known,
    Part,
    Result,
    Table,
    Unknown,
    Value,
)

LISTINGS = frozenset({".modules", ".named_modules", ".children", ".named_children"})
MOST = 60  # modules of one model
DEEPEST = 8


class _OutOfSight(Exception):
    """A part of a model is out of sight."""


def listed(listing: Value) -> list[Value] | None:
    """Return the modules that a call lists, with names where it names them; None if unknown."""
    if not isinstance(listing, Result) or listing.maker not in LISTINGS or listing.args:
        return None
    model = listing.receiver
    if model is None or not (library.is_module(model) and _is_seen(model)):
        return None
    is_deep = listing.maker.endswith("modules")
    try:
        found = list(_inside(model, "", DEEPEST if is_deep else 1))
    except _OutOfSight:
        return None
    found = [("", model), *found] if is_deep else found
    found = list({id(value): (name, value) for name, value in reversed(found)}.values())[::-1]
    if len(found) > MOST:
        return None
    if ".named" not in listing.maker:
        return [value for _, value in found]
    return [iteration.items_of((Known(name), value), "tuple") for name, value in found]


def _is_seen(model: Value) -> bool:
    return isinstance(model, Instance) or iteration.is_container(model)


def _inside(module: Value, prefix: str, depth: int) -> Iterator[tuple[str, Value]]:
    for key, value in _children(module):
        if isinstance(value, (Choice, Unknown, Part)):
            raise _OutOfSight
        if not library.is_module(value):
            continue
        name = f"{prefix}.{key}" if prefix else key
        yield name, value
        if depth > 1:
            yield from _inside(value, name, depth - 1)


def _children(module: Value) -> list[tuple[str, Value]]:
    """The attributes of a module, or the layers of a container."""
    if isinstance(module, Instance):
        held = [(k, v) for k, v in module.fields.items() if isinstance(k, str)]
        return [(k, v) for k, v in held if not isinstance(v, (Known, Items, Table))]
    layers = iteration.seen_layers(module) if iteration.is_container(module) else []
    return [(str(number), layer) for number, layer in enumerate(layers)]
