"""HTML that is escaped by construction: text becomes markup only through `tag`."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from traindx.report import words

Attributes = Mapping[str, "str | int | float | None"]
_EMPTY = frozenset({"br", "hr"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Return a value as HTML that shows it, on one line."""
    return value if isinstance(value, Markup) else Markup(escape(words.clean_piece(value)))


def lines(value: object) -> Markup:
    """Return a value as HTML that shows it with its lines kept."""
    return Markup(escape(words.clean_block(value)))


def tag(name: str, attributes: Attributes, *children: object) -> Markup:
    """Return an element; children that are not markup are escaped, absent attributes left out."""
    given = "".join(_attribute(k, v) for k, v in attributes.items() if v is not None)
    if name in _EMPTY:
        return Markup(f"<{name}{given}>")
    inner = "".join(text(child) for child in children if child is not None)
    return Markup(f"<{name}{given}>{inner}</{name}>")


def _attribute(name: str, value: str | int | float | None) -> str:
    return f' {name}="{escape(words.clean(value), quote=True)}"'


def join(*parts: object) -> Markup:
    """Return parts one after another."""
    return Markup("".join(text(part) for part in parts if part is not None))
