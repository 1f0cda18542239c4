"""CRC-32C as TFRecord files store it, of many records at once.

The checksum is linear: the one of a record follows from that of another record and the bytes in
which the two differ. Records of one writer differ in a dozen bytes, so that checking a million of
them costs a few table lookups each.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]

CHUNK = 256
LONGEST_ROW = 1024 + 4  # bytes of a record that `changed` can compare
_POLYNOMIAL = 0x82F63B78
_MASK = 0xA282EAD8


def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        state = byte
        for _ in range(8):
            state = (state >> 1) ^ (_POLYNOMIAL if state & 1 else 0)
        table.append(state)
    return tuple(table)


_TABLE = _table()


def masked(data: bytes) -> int:
    """Return the stored form of the checksum of a few bytes."""
    state = 0xFFFFFFFF
    for byte in data:
        state = _TABLE[(state ^ byte) & 0xFF] ^ (state >> 8)
    state ^= 0xFFFFFFFF
    return (((state >> 15) | (state << 17)) + _MASK) & 0xFFFFFFFF


def mask(states: Words) -> Words:
    """Return the stored form of some checksums."""
    rotated = (states >> np.uint32(15)) | (states << np.uint32(17))
    return np.asarray(rotated + np.uint32(_MASK), dtype=np.uint32)


def unmask(stored: int) -> int:
    """Return the checksum behind its stored form."""
    rotated = (stored - _MASK) & 0xFFFFFFFF
    return ((rotated << 15) | (rotated >> 17)) & 0xFFFFFFFF


@lru_cache(maxsize=1)
def tables() -> NDArray[np.uint32]:
    """Return what each byte adds to a checksum, by its distance from the end."""
    built = np.empty((LONGEST_ROW, 256), dtype=np.uint32)
    first = built[0] = np.array(_TABLE, dtype=np.uint32)
    for i in range(1, LONGEST_ROW):
        built[i] = first[built[i - 1] & 0xFF] ^ (built[i - 1] >> np.uint32(8))
    return built


def masked_each(data: Bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Words:
    """Return the stored form of the checksum of each of some spans."""
    counts = -(-lengths // CHUNK)
    ends = np.cumsum(counts)
    chunks = np.zeros((int(counts.sum()), CHUNK), dtype=np.uint8)
    flat = chunks.reshape(-1)
    for start, length, end in zip(starts.tolist(), lengths.tolist(), ends.tolist(), strict=True):
        at = end * CHUNK - length
        flat[at : at + length] = data[start : start + length]
        flat[at : at + min(4, length)] ^= 0xFF  # the same as a state that begins with ones
    table = tables()
    parts = np.zeros(len(chunks), dtype=np.uint32)
    for i in range(CHUNK):
        parts ^= table[CHUNK - 1 - i][chunks[:, i]]
    result = np.empty(len(starts), dtype=np.uint32)
    for i, (end, count) in enumerate(zip(ends.tolist(), counts.tolist(), strict=True)):
        state = _combine(parts[end - count : end].tolist()) ^ 0xFFFFFFFF
        result[i] = state
    result = mask(result)
    for i in np.flatnonzero(
        lengths < 4
    ).tolist():  # too short for the trick with the first four bytes
        start = int(starts[i])
        result[i] = masked(bytes(data[start : start + int(lengths[i])]))
    return result


@lru_cache(maxsize=1)
def _advance() -> tuple[list[int], ...]:
    return tuple(tables()[CHUNK - 1 - i].tolist() for i in range(4))


def _combine(parts: list[int]) -> int:
    """Return the checksum of a message from those of its chunks."""
    a, b, c, d = _advance()
    state = 0
    for part in parts:
        state = a[state & 255] ^ b[state >> 8 & 255] ^ c[state >> 16 & 255] ^ d[state >> 24] ^ part
    return state
