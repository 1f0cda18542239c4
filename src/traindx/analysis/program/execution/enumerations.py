"""Enumerations: classes derived from `Enum`, and their members."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from traindx.analysis.program.execution import names
from traindx.analysis.program.execution.values import (
    ClassValue,
    EnumMember,
    Known,
    Result,
    Value,
)

if TYPE_CHECKING:
    from traindx.analysis.program.execution.machine import Machine

PLAIN = frozenset({"enum.Enum", "enum.Flag", "Enum"})


def is_plain(cls: ClassValue) -> bool:
    """Tell whether the members of a class are equal to nothing but themselves.

    Those of `StrEnum`, `IntEnum` or `class Mode(str, Enum)` are equal to their values, and so may
    be those of a class that says itself what is equal.
    """
    is_own = any("__eq__" in home.methods for home in cls.lineage())
    return bool(cls.foreign) and all(base in PLAIN for base in cls.foreign) and not is_own


def member(cls: ClassValue, name: str, value: Value) -> Value:
    """Return the member that an attribute of an enumeration is; any other attribute as it is."""
    if not is_plain(cls) or name.startswith("_"):
        return value
    if isinstance(value, Result) and value.maker in ("enum.auto", "auto"):
        value = Known(1 + _names(cls).index(name))
    if not isinstance(value, Known):
        return value
    return EnumMember(value.value, owner=cls.node.name, name=name)


def attribute(value: EnumMember, name: str) -> Known | None:
    """`member.value`, `member.name`."""
    found = {"value": value.value, "name": value.name}
    return Known(found[name], (value,)) if name in found else None


def members(m: Machine, cls: ClassValue) -> list[Value] | None:
    """Return the members of an enumeration, in order; None where the class is none."""
    if not any(base.startswith("enum.") or base == "Enum" for base in cls.foreign):
        return None
    return [names.attribute(m, cls, name, cls.node, cls.scope) for name in _names(cls)] or None


def by_value(m: Machine, cls: ClassValue, value: Value) -> Value | None:
    """`Phase("train")`: the member that has a value; None where none is known to have it."""
    for found in members(m, cls) or () if isinstance(value, Known) else ():
        if isinstance(found, Known) and isinstance(value, Known) and found.value == value.value:
            return found
    return None


def _names(cls: ClassValue) -> list[str]:
    targets = [t for n in cls.node.body if isinstance(n, ast.Assign) for t in n.targets]
    return [t.id for t in targets if isinstance(t, ast.Name) and not t.id.startswith("_")]
