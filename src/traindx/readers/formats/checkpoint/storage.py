"""Where the numbers of a tensor stand in a file, and what they are like, by bounded samples."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

MAX_SAMPLE = 2_000_000  # numbers of one tensor that are looked at
MAX_TOTAL = 200_000_000  # of one checkpoint
BLOCK = 1 << 16  # numbers in a row, of the blocks that a large tensor is sampled by

_NUMPY = {
    "float64": "f8", "float32": "f4", "float16": "f2", "bfloat16": "u2", "int64": "i8",
    "int32": "i4", "int16": "i2", "int8": "i1", "uint8": "u1", "uint16": "u2", "uint32": "u4",
    "uint64": "u8", "bool": "u1", "complex64": "c8", "complex128": "c16",
    "float8_e5m2": "u1", "float8_e4m3fn": "u1",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor and where its numbers begin; without a start they cannot be read."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int | None = None
    is_row_major: bool = True
    is_alias: bool = False
    byteorder: str = "<"

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def width(self) -> int:
        return item_size(self.dtype)


def item_size(dtype: str) -> int:
    """Return the bytes of one number, or 0 for a type that is not read."""
    return np.dtype(_NUMPY[dtype]).itemsize if dtype in _NUMPY else 0


def sample_limit(sizes: Sequence[int], total: int = MAX_TOTAL) -> int:
    """Return how many numbers of each tensor to look at, so that the total keeps its bound.

    It depends on nothing but the sizes: two checkpoints of one model are sampled alike.
    """
    wanted = sum(min(size, MAX_SAMPLE) for size in sizes)
    return MAX_SAMPLE if wanted <= total else max(BLOCK, total // len(sizes))


def measure(file: BinaryIO, place: StoredTensor, limit: int = MAX_SAMPLE) -> dict[str, float]:
    """Return a tensor's statistics; nothing if its numbers cannot be read."""
    if place.start is None or place.size == 0 or place.width == 0:
        return {}
    raw = _sample(file, place, limit)
    if raw is None:
        return {}
    looked_at = len(raw) // place.width
    found = _statistics(_numbers(raw, place))
    found["checksum"] = float(zlib.crc32(raw))
    found["count"] = float(looked_at)
    if looked_at < place.size:
        found["sampled"] = 1.0
        found["norm"] *= math.sqrt(place.size / looked_at)
    elif place.is_row_major and len(place.shape) > 1 and place.shape[0] > 1:
        rows = np.frombuffer(raw, dtype=np.uint8).reshape(place.shape[0], -1)
        found["equal_rows"] = float(bool((rows == rows[0]).all()))
    if place.is_alias:
        found["alias"] = 1.0
    return found


def _sample(file: BinaryIO, place: StoredTensor, limit: int) -> bytes | None:
    """Read a tensor, or blocks spread evenly over a large one."""
    assert place.start is not None
    if place.size <= limit:
        file.seek(place.start)
        wanted = place.size * place.width
        raw = file.read(wanted)
        return raw if len(raw) == wanted else None
    sample = bytearray()
    last = place.size - BLOCK
    for at in np.linspace(0, last, max(1, limit // BLOCK)).astype(np.int64):
        file.seek(place.start + int(at) * place.width)
        piece = file.read(BLOCK * place.width)
        if len(piece) != BLOCK * place.width:
            return None
        sample += piece
    return bytes(sample)


def _numbers(raw: bytes, place: StoredTensor) -> NDArray[Any]:
    code = _NUMPY[place.dtype]
    values = np.frombuffer(raw, dtype=np.dtype(place.byteorder + code))
    if place.dtype == "bfloat16":
        return (values.astype(np.uint32) << 16).view(np.float32)
    if place.dtype == "float8_e5m2":  # the upper half of a float16
        return (values.astype(np.uint16) << 8).view(np.float16)
    if place.dtype == "float8_e4m3fn":
        return np.asarray(_E4M3[values])
    if values.dtype.kind == "c":
        return values.view(values.real.dtype)
    return values


def _e4m3_table() -> NDArray[np.float32]:
    bits = np.arange(256)
    exponent, mantissa = (bits >> 3) & 15, bits & 7
    normal = (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    values = np.where(exponent == 0, mantissa / 8 * 2.0**-6, normal)
    values = np.where((bits & 127) == 127, np.nan, values)
    return (np.where(bits & 128, -1.0, 1.0) * values).astype(np.float32)


_E4M3 = _e4m3_table()


def _statistics(values: NDArray[Any]) -> dict[str, float]:
    """Sum up block by block: a block stays in the processor's cache, a whole tensor does not."""
    nan = inf = zeros = count = 0
    total = square = 0.0
    low, high = math.inf, -math.inf
    with np.errstate(all="ignore"):
        for at in range(0, len(values), BLOCK):
            wide = values[at : at + BLOCK].astype(np.float64)
            squared = float(np.square(wide).sum())
            if not math.isfinite(squared):  # a quick way to see that all are numbers
                is_finite = np.isfinite(wide)
                lost = int(np.isnan(wide).sum())
                nan += lost
                inf += len(wide) - int(is_finite.sum()) - lost
                wide = wide[is_finite]
                squared = float(np.square(wide).sum())
            if len(wide):
                zeros += len(wide) - int(np.count_nonzero(wide))
                count += len(wide)
                total += float(wide.sum())
                square += squared
                low, high = min(low, float(wide.min())), max(high, float(wide.max()))
    found = {"nan": float(nan), "inf": float(inf), "zeros": zeros / max(1, count)}
    if not count:
        return {**found, "norm": math.nan}
    mean = total / count
    variance = max(0.0, square / count - mean * mean) if low < high else 0.0
    spread = {"mean": mean, "std": math.sqrt(variance), "min": low, "max": high}
    return {**found, **spread, "norm": math.sqrt(square)}
