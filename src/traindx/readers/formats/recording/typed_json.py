"""Values of the classes of a recording out of JSON, by type hints, whatever the JSON holds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

MAX_ITEMS = 50_000  # of one list
MAX_DIMENSIONS = 64  # a list of whole numbers is a shape
MAX_ENTRIES = 1000  # of one mapping
MAX_TEXT = 20_000  # characters
MAX_DEPTH = 6  # of a value of no fixed type
LARGEST = 1 << 63
_WORDS = frozenset({"nan", "inf", "-inf", "infinity", "-infinity"})

Odd = Counter[str]
Shape = Callable[[Any, Odd], Any]


class Misfit(Exception):
    """A value is of another kind than its field."""


@cache
def shape_of(hint: Any) -> Shape:
    """Return the function that makes a value of a type hint out of JSON, or raises Misfit."""
    if is_dataclass(hint) and isinstance(hint, type):
        return _record(hint)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _optional(shape_of(next(h for h in inner if h is not NoneType)))
    if origin is tuple:
        return _list(inner[0]) if inner[1:] == (...,) else _fixed(inner)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(shape_of(inner[1]))
    return _PLAIN[hint]


def _record(kind: type) -> Shape:
    hints = get_type_hints(kind)
    shapes = {f.name: shape_of(hints[f.name]) for f in fields(kind)}
    needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}

    def shape(value: Any, odd: Odd) -> Any:
        if not isinstance(value, Mapping):
            raise Misfit
        made = {}
        for name, own in shapes.items():
            given = value.get(name)
            if given is None:  # left out, or not known: both have the default
                continue
            try:
                made[name] = own(given, odd)
            except Misfit:
                odd[f"{kind.__name__}.{name}"] += 1
        if not needed <= made.keys():
            raise Misfit
        return kind(**made)

    return shape


def _optional(own: Shape) -> Shape:
    return lambda value, odd: None if value is None else own(value, odd)


def _list(hint: Any) -> Shape:
    own = shape_of(hint)
    limit = MAX_DIMENSIONS if own is _integer else MAX_ITEMS
    as_they_are = _AS_THEY_ARE.get(hint, frozenset())

    def shape(value: Any, odd: Odd) -> Any:
        if not isinstance(value, list):
            raise Misfit
        if as_they_are.issuperset(map(type, value)):  # the columns of a sample are long
            return tuple(value[:limit])
        return tuple([own(item, odd) for item in value[:limit]])

    return shape


def _fixed(hints: tuple[Any, ...]) -> Shape:
    shapes = [shape_of(hint) for hint in hints]

    def shape(value: Any, odd: Odd) -> Any:
        if not isinstance(value, list) or len(value) < len(shapes):
            raise Misfit
        return tuple(own(item, odd) for own, item in zip(shapes, value, strict=False))

    return shape


def _mapping(own: Shape) -> Shape:
    def shape(value: Any, odd: Odd) -> Any:
        if not isinstance(value, Mapping):
            raise Misfit
        kept = list(value.items())[:MAX_ENTRIES]
        return {str(key)[:MAX_TEXT]: own(item, odd) for key, item in kept}

    return shape


def number(value: Any, odd: Odd | None = None) -> float:
    """Return a JSON value as a number, NaN where it is not known."""
    kind = type(value)
    if kind is float:
        return float(value)
    if kind is int:
        largest = math.inf if value > 0 else -math.inf
        return float(value) if value.bit_length() < 1000 else largest
    if value is None:
        return math.nan
    if kind is str and value.lower() in _WORDS:
        return float(value)
    raise Misfit


def _integer(value: Any, odd: Odd) -> int:
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is int and -LARGEST < value < LARGEST:
        return int(value)
    raise Misfit


def _truth(value: Any, odd: Odd) -> bool:
    if type(value) is bool or (type(value) is int and value in (0, 1)):
        return bool(value)
    raise Misfit


def _text(value: Any, odd: Odd) -> str:
    if isinstance(value, str):
        return value[:MAX_TEXT]
    if isinstance(value, (int, float)):
        return str(number(value) if isinstance(value, int) and abs(value) > LARGEST else value)
    raise Misfit


def _anything(value: Any, odd: Odd) -> Any:
    return _bounded(value, 0)


def _bounded(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return value if abs(value) < LARGEST else number(value)
    if isinstance(value, str):
        return value[:MAX_TEXT]
    if depth >= MAX_DEPTH:
        return None
    if isinstance(value, list):
        return tuple(_bounded(item, depth + 1) for item in value[:MAX_ENTRIES])
    kept = list(value.items())[:MAX_ENTRIES]
    return {str(key)[:MAX_TEXT]: _bounded(item, depth + 1) for key, item in kept}


_AS_THEY_ARE: dict[Any, frozenset[type]] = {
    float: frozenset({float}),
    float | None: frozenset({float, NoneType}),
    bool | None: frozenset({bool, NoneType}),
}
_PLAIN: dict[Any, Shape] = {
    float: number,
    int: _integer,
    bool: _truth,
    str: _text,
    object: _anything,
}
