"""Dictionaries: written down, made with a default, derived from `dict`, and their methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import calls, command_line, iteration, names
from traindx.analysis.program.execution.machine import MISSING
from traindx.analysis.program.execution.values import (
    Choice,
    FunctionValue,
    Instance,
    Items,
    Known,
    Result,
    Scope,
    Table,
    Unknown,
    Value,
    joined,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

Keywords = Mapping[str, Value]
ENTRIES = "the entries of a dictionary"
MAPPINGS = frozenset(
    {"builtins.dict", "dict", "collections.OrderedDict", "collections.UserDict", "typing.Dict",
     "collections.defaultdict"}
)  # fmt: skip
ANY_KEY = ("some", "key")


def entries_of(value: Value | None) -> Table | None:
    """Return the entries of a dictionary, of layers by name or of an object derived from one."""
    if isinstance(value, Table):
        return value
    if isinstance(value, Result) and value.maker == "torch.nn.ModuleDict":
        given = next(iter((*value.args, *value.kwargs.values())), None)
        return given if isinstance(given, Table) else None
    if not isinstance(value, Instance) or not any(b in MAPPINGS for b in value.cls.foreign):
        return None
    held = value.fields.setdefault(ENTRIES, Table())
    return held if isinstance(held, Table) else None


def fill(m: Machine, owner: Value, args: Sequence[Value], kwargs: Keywords) -> None:
    """Give a dictionary what its constructor, or `update`, is given."""
    entries = entries_of(owner)
    if entries is None:
        return
    for given in args:
        other = entries_of(given)
        if other is not None:
            if m.is_repeated() and other.fields.keys() - entries.fields.keys():
                entries.is_whole = entries.is_whole and not entries.fields  # it grows by the turn
            for key, value in other.fields.items():
                m.write(entries.fields, key, value)
        entries.is_whole = entries.is_whole and other is not None and other.is_whole
    for name, value in kwargs.items():
        if name == "**":
            entries.is_whole = False
        else:
            m.write(entries.fields, name, value)


def missing(m: Machine, owner: Value, key: Value) -> Value | None:
    """Return what a dictionary makes of a key that it has not; None where it makes nothing."""
    if isinstance(owner, Instance):
        method = names.find_method(m, owner.cls, "__missing__", owner)
        if isinstance(method, FunctionValue):
            return calls.call(m, method, (key,), {}, method.node, Scope(method.module))
    entries = entries_of(owner)
    if entries is None or entries.factory is None or entries.site is None:
        return None
    place = entries.site
    made = calls.call(m, entries.factory, (), {}, place.node, Scope(place.module))
    is_known = isinstance(key, Known) and isinstance(key.value, (int, str))
    m.write(entries.fields, key.value if isinstance(key, Known) and is_known else ANY_KEY, made)
    return made


def item_of(m: Machine, owner: Value, key: Value) -> Value | None:
    """Return an entry of a dictionary; None where nothing is known of it."""
    entries = entries_of(owner)
    if entries is None:
        return None
    if isinstance(key, Known):
        held = entries.fields.get(key.value) or entries.fields.get(ANY_KEY)
        return held or (missing(m, owner, key) if entries.is_whole else None)
    if key in entries.fields:
        return entries.fields[key]
    if not entries.fields:
        return missing(m, owner, key)
    found = list(entries.fields.values())
    return found[0] if len(found) == 1 else Choice(tuple(found[:6]))


def method(
    m: Machine, owner: Value, name: str, args: Sequence[Value], kwargs: Keywords
) -> Value | None:
    """Return what a method of a dictionary gives; None where that is not known."""
    entries = entries_of(owner)
    if entries is None:
        return None
    if name in ("values", "items", "keys"):
        return _view(entries, name)
    if name in ("get", "pop", "setdefault") and args:
        return _taken(m, entries, name, args)
    if name in ("update", "__init__"):
        fill(m, owner, args, kwargs)
        return Known(None)
    if name == "copy":
        return Table(entries.is_whole, entries.factory, held=dict(entries.fields))
    return None


def _taken(m: Machine, owner: Table, name: str, args: Sequence[Value]) -> Value:
    """`get`, `pop` and `setdefault`."""
    key = args[0]
    default = args[1] if len(args) > 1 else Known(None)
    if name == "get" and owner.is_whole and len(args) > 1:
        usual = command_line.default_of(m, key)
        if usual is not None and usual.value not in owner.fields:
            return default  # what the program does unless it is told otherwise
    if isinstance(key, Known) and owner.is_whole and key.value not in owner.fields:
        if name == "setdefault":
            iteration.set_item(m, owner, key, default)
        return default
    if name == "setdefault" and not isinstance(key, Known):
        iteration.set_item(m, owner, key, default)
        return default
    held = iteration.get_item(m, owner, key)
    if name == "get" and not isinstance(key, Known):
        return joined(held, default)
    if name == "pop" and isinstance(key, Known) and key.value in owner.fields:
        m.write(owner.fields, key.value, MISSING)
    return held


def _view(owner: Table, name: str) -> Value:
    keys = [
        k if isinstance(k, Value) else Known(k) if isinstance(k, (str, int)) else Unknown()
        for k in owner.fields
    ]
    values = list(owner.fields.values())
    if name == "keys":
        found: list[Value] = list(keys)
    elif name == "values":
        found = values
    else:
        pairs = zip(keys, values, strict=True)
        found = [iteration.items_of(pair, "tuple") for pair in pairs]
    return iteration.items_of(found, is_whole=owner.is_whole)


def merged(left: Value, right: Value) -> Table | None:
    """Return `left | right` of two dictionaries; what the right one may add is left open."""
    base = entries_of(left)
    others = right.options if isinstance(right, Choice) else (right,)
    tables = [t for t in map(entries_of, others) if t is not None]
    if base is None or not tables:
        return None
    if len(others) > 1:
        return Table(is_whole=False, held=dict(base.fields))
    whole = base.is_whole and tables[0].is_whole
    return Table(whole, held={**base.fields, **tables[0].fields})


def made_of(args: Sequence[Value], kwargs: Keywords) -> Table | None:
    """Return what `dict(…)` makes; None where it is out of sight."""
    if args and not kwargs and entries_of(args[0]) is None and not isinstance(args[0], Items):
        return None
    made = Table("**" not in kwargs)
    for given in args:
        other = entries_of(given)
        rows = _rows(given) if other is None else dict(other.fields)
        made.fields.update(rows or {})
        made.is_whole = made.is_whole and (rows is not None if other is None else other.is_whole)
    made.fields.update({k: v for k, v in kwargs.items() if k != "**"})
    return made


def _rows(value: Value) -> dict[object, Value] | None:
    """The entries of a list of pairs that is written down."""
    rows = [iteration.members(r) for r in iteration.members(value) or ()]
    if iteration.members(value) is None or any(r is None or len(r) != 2 for r in rows):
        return None
    found = {row[0].value: row[1] for row in rows if row and isinstance(row[0], Known)}
    return found if len(found) == len(rows) else None
