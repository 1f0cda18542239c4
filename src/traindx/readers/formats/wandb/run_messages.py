"""The few messages of `wandb_internal.proto` that tell of training, parsed by hand.

Field numbers are those of wandb 0.10 to 0.31. What is not known is stepped over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from traindx.readers.json_text import load

# fields of a Record
HISTORY, SUMMARY, CONFIG, ALERT, OUTPUT, RUN, EXIT, PREEMPTING = 2, 3, 5, 10, 13, 17, 18, 23
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_KEY, _NESTED_KEY, _VALUE_JSON = 1, 2, 16
_BOOLEAN, _INTEGER, _NUMBER, _TEXT, _JSON = 4, 5, 6, 7, 8  # since 0.2x, beside value_json
_LONGEST_VARINT = 10
_SHORT, _NUMERIC = 32, frozenset(bytes([c]) for c in b"-0123456789")

Value = int | bytes


class DamagedMessage(ValueError):
    """Bytes that are no protobuf message."""


@dataclass(frozen=True, slots=True)
class Item:
    """A key and its value, as history, summary and config have them."""

    path: tuple[str, ...]
    value: Any


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the fields of a message: numbers as integers, everything else as bytes."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            length, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise DamagedMessage(f"wire type {wire}")
        if at + length > end:
            raise DamagedMessage("it ends within a field")
        yield tag >> 3, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    if at < len(data) and data[at] < 0x80:  # most of them
        return data[at], at + 1
    value = 0
    for i in range(_LONGEST_VARINT):
        if at + i >= len(data):
            raise DamagedMessage("it ends within a number")
        byte = data[at + i]
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, at + i + 1
    raise DamagedMessage("a number without an end")


def inner(data: bytes, number: int) -> Iterator[bytes]:
    """Yield the messages and strings in the fields of one number."""
    for field, value in fields(data):
        if field == number and isinstance(value, bytes):
            yield value


def integer(data: bytes, number: int) -> int | None:
    """Return the last integer in the field of a number, as a signed one."""
    found = None
    for field, value in fields(data):
        if field == number and isinstance(value, int):
            found = value - (1 << 64) if value >> 63 else value
    return found


def text_of(data: bytes, number: int) -> str:
    """Return the text in the field of a number, "" if there is none."""
    return next((v.decode(errors="replace") for v in inner(data, number)), "")


def item_of(data: bytes) -> Item:
    """Return a key with its value."""
    path: list[str] = []
    value: Any = None
    for field, raw in fields(data):
        if isinstance(raw, bytes):
            if field in (_KEY, _NESTED_KEY):
                path.append(raw.decode(errors="replace"))
            elif field in (_VALUE_JSON, _JSON):
                value = _parsed(raw)
            elif field == _NUMBER and len(raw) == 8:
                value = struct.unpack("<d", raw)[0]
            elif field == _TEXT:
                value = raw.decode(errors="replace")
        elif field == _BOOLEAN:
            value = bool(raw)
        elif field == _INTEGER:
            value = (raw >> 1) ^ -(raw & 1)
    return Item(tuple(path), value)


def _parsed(raw: bytes) -> Any:
    """Return what a JSON text says; most of them are short numbers."""
    if len(raw) <= _SHORT and raw[:1] in _NUMERIC:
        try:
            return int(raw) if raw.isdigit() else float(raw)
        except ValueError:
            pass
    return load(raw.decode(errors="replace"))


def items_of(data: bytes) -> Iterator[Item]:
    """Yield the items of a history, or the updates of a summary or configuration."""
    for entry in inner(data, 1):
        yield item_of(entry)
