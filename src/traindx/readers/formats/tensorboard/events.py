"""Event messages: the protobuf wire format, read as far as a diagnosis needs it.

Images, audio and graphs are stepped over. Every number is returned with the place of its bytes, so
that records of the same layout can be read without parsing them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from traindx.model.run import Floats

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_TEXT = 1 << 20
MAX_BUCKETS = 100_000
MAX_VALUES = 20_000  # in one event
_FLOATS = {1: "<f4", 2: "<f8"}  # DT_FLOAT, DT_DOUBLE
_STRING = 7
_HALVES = {19, 14}  # DT_HALF, DT_BFLOAT16
_BOUNDS = struct.Struct("<d")

Span = tuple[int, int]
Field = tuple[int, int, int, int]  # number, wire type, and the span of the content


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number, and where in the record its bytes stand if it has a fixed width."""

    tag: bytes
    value: float
    at: int = -1
    form: str = ""


@dataclass(slots=True)
class EventContent:
    """What one event says."""

    step: int = 0
    step_span: Span | None = None
    version: bytes = b""
    tag_end: int = 0  # where the first tag ends
    scalars: list[Scalar] = field(default_factory=list)
    norms: list[tuple[bytes, float]] = field(default_factory=list)  # of histograms
    texts: list[tuple[bytes, bytes]] = field(default_factory=list)
    hparams: list[bytes] = field(default_factory=list)
    plugins: dict[bytes, bytes] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        return not (self.norms or self.texts or self.hparams)

    @property
    def is_empty(self) -> bool:
        return self.is_plain and not self.scalars


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a number of variable width and where it ends."""
    result = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
    raise ValueError("a number has no end")


def signed(number: int) -> int:
    """Return a 64-bit number as a signed one."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >= 1 << 63 else number


def fields(data: bytes, at: int, end: int) -> Iterator[Field]:
    """Yield the fields of a message; a damaged one raises `ValueError`."""
    while at < end:
        key, at = varint(data, at, end)
        kind = key & 7
        if kind == VARINT:
            _, stop = varint(data, at, end)
        elif kind == BYTES:
            length, at = varint(data, at, end)
            stop = at + length
        elif kind in (FIXED64, FIXED32):
            stop = at + (8 if kind == FIXED64 else 4)
        else:
            raise ValueError(f"no field has the wire type {kind}")
        if stop > end:
            raise ValueError("a field is longer than its message")
        yield key >> 3, kind, at, stop
        at = stop


def parse(data: bytes, start: int, end: int) -> EventContent:
    """Return what the event in a span says; a damaged one raises `ValueError`."""
    told = EventContent()
    for number, kind, a, b in fields(data, start, end):
        if number == 2 and kind == VARINT:
            told.step = signed(varint(data, a, b)[0])
            told.step_span = (a - start, b - start)
        elif number == 3 and kind == BYTES:
            told.version = data[a : min(b, a + 64)]
        elif number == 5 and kind == BYTES:
            for i, (inner, wire, c, d) in enumerate(fields(data, a, b)):
                if inner == 1 and wire == BYTES and i < MAX_VALUES:
                    _read_value(told, data, start, (c, d))
    return told


def _read_value(told: EventContent, data: bytes, start: int, span: Span) -> None:
    """Add what one value of a summary says."""
    tag = b""
    content: Field | None = None
    for number, kind, a, b in fields(data, *span):
        if number == 1 and kind == BYTES:
            tag = data[a : min(b, a + 1000)]
            told.tag_end = told.tag_end or b - start
        elif (number, kind) in ((2, FIXED32), (5, BYTES), (8, BYTES)):
            content = (number, kind, a, b)
        elif number == 9 and kind == BYTES:
            _read_metadata(told, data, tag, (a, b))
    if content is None:
        return
    number, _, a, b = content
    if number == 2:
        value = struct.unpack_from("<f", data, a)[0]
        told.scalars.append(Scalar(tag, value, a - start, "<f4"))
    elif number == 5:
        norm = _norm(data, (a, b))
        if norm is not None:
            told.norms.append((tag, norm))
    else:
        _read_tensor(told, data, start, tag, (a, b))


def _read_metadata(told: EventContent, data: bytes, tag: bytes, span: Span) -> None:
    for number, kind, a, b in fields(data, *span):
        if number != 1 or kind != BYTES:
            continue
        name, content = b"", b""
        for inner, wire, c, d in fields(data, a, b):
            if inner == 1 and wire == BYTES:
                name = data[c : min(d, c + 100)]
            elif inner == 2 and wire == BYTES and d - c <= MAX_TEXT:
                content = data[c:d]
        told.plugins[tag] = name
        if name == b"hparams":
            told.hparams.append(content)


def _read_tensor(told: EventContent, data: bytes, start: int, tag: bytes, span: Span) -> None:
    dtype, shape = 0, ()  # type: tuple[int, tuple[int, ...]]
    parts: dict[int, list[Field]] = {}
    for found in fields(data, *span):
        number, kind, a, b = found
        if number == 1 and kind == VARINT:
            dtype = varint(data, a, b)[0]
        elif number == 2 and kind == BYTES:
            shape = _shape(data, (a, b))
        elif len(parts.setdefault(number, [])) < 100:
            parts[number].append(found)
    if dtype == _STRING:
        spans = [(a, b) for _, kind, a, b in parts.get(8, ()) if kind == BYTES]
        if spans and sum(b - a for a, b in spans) <= MAX_TEXT:
            told.texts.append((tag, b"\n".join(data[a:b] for a, b in spans)))
    elif dtype in _FLOATS:
        _read_floats(told, data, start, tag, (_FLOATS[dtype], shape, parts))
    elif all(size == 1 for size in shape):
        value = _odd_number(data, dtype, parts)
        if value is not None:
            told.scalars.append(Scalar(tag, value))


def _read_floats(
    told: EventContent,
    data: bytes,
    start: int,
    tag: bytes,
    tensor: tuple[str, tuple[int, ...], dict[int, list[Field]]],
) -> None:
    form, shape, parts = tensor
    width = int(form[-1])
    found = parts.get(4) or parts.get(5 if width == 4 else 6)
    if not found:
        return
    _, kind, a, b = found[0]
    if kind == VARINT or (b - a) % width:
        return
    if all(size == 1 for size in shape) and b - a == width:
        value = float(np.frombuffer(data, form, 1, a)[0])
        told.scalars.append(Scalar(tag, value, a - start, form))
    elif len(shape) == 2 and shape[1] == 3 and b - a == 3 * shape[0] * width <= 24 * MAX_BUCKETS:
        buckets = np.frombuffer(data, form, 3 * shape[0], a).astype(np.float64).reshape(-1, 3)
        if len(buckets):
            told.norms.append((tag, _norm_of_buckets(*buckets.T)))


def _shape(data: bytes, span: Span) -> tuple[int, ...]:
    sizes: list[int] = []
    for number, kind, a, b in fields(data, *span):
        if number == 2 and kind == BYTES and len(sizes) < 8:
            size = next((varint(data, c, d)[0] for n, k, c, d in fields(data, a, b)
                         if n == 1 and k == VARINT), 0)  # fmt: skip
            sizes.append(size)
    return tuple(sizes)


def _odd_number(data: bytes, dtype: int, parts: dict[int, list[Field]]) -> float | None:
    """Return a scalar of integers, halves or truth values."""
    for number in (7, 10, 11, 13, 16, 17):
        for _, kind, a, b in parts.get(number, ())[:1]:
            if kind not in (VARINT, BYTES):
                return None
            raw = varint(data, a, b)[0]
            if dtype not in _HALVES:
                return float(signed(raw))
            bits = np.array([raw & 0xFFFF], dtype=np.uint16)
            if dtype == 19:
                return float(bits.view(np.float16)[0])
            return float((bits.astype(np.uint32) << np.uint32(16)).view(np.float32)[0])
    return None


def _norm(data: bytes, span: Span) -> float | None:
    """Return the Euclidean norm of the values that a histogram was made of."""
    known = dict.fromkeys(range(1, 6), 0.0)
    lists: dict[int, list[float]] = {6: [], 7: []}
    for number, kind, a, b in fields(data, *span):
        if kind == FIXED64 and number in known:
            known[number] = _BOUNDS.unpack_from(data, a)[0]
        elif number in lists and (b - a) % 8 == 0 and b - a <= 8 * MAX_BUCKETS:
            if kind == FIXED64 and len(lists[number]) < MAX_BUCKETS:
                lists[number].append(_BOUNDS.unpack_from(data, a)[0])
            elif kind == BYTES:
                lists[number] += np.frombuffer(data, "<f8", (b - a) // 8, a).tolist()
    low, high, count, _, squares = known.values()
    if not (np.isfinite(low) and np.isfinite(high)):
        return float("nan") if np.isnan(low) or np.isnan(high) else float("inf")
    if count <= 0:
        return None
    # single precision makes the squares of tiny gradients zero and those of huge ones infinite
    is_lost = not np.isfinite(squares) or (squares <= 0.0 and (low, high) != (0.0, 0.0))
    right, counts = np.array(lists[6]), np.array(lists[7])
    if not is_lost or len(right) != len(counts) or not len(right):
        return float(np.sqrt(squares)) if squares >= 0.0 else float("nan")
    left = np.append(low, right[:-1])
    return _norm_of_buckets(np.clip(left, low, high), np.clip(right, low, high), counts)


def _norm_of_buckets(left: Floats, right: Floats, counts: Floats) -> float:
    """Return the norm of values that are spread evenly within each bucket."""
    if not np.isfinite(counts).all():
        return float("nan")
    filled = counts > 0
    left, right = left[filled], right[filled]
    scale = float(max(np.abs(left).max(initial=0.0), np.abs(right).max(initial=0.0)))
    if scale == 0.0 or not np.isfinite(scale):
        return scale
    left, right = left / scale, right / scale  # squares of tiny or huge bounds stay in range
    return scale * float(np.sqrt(counts[filled] @ (left**2 + left * right + right**2) / 3.0))
