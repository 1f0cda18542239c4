"""Sizes of memory in messages, and the numbers of an out-of-memory error."""

from __future__ import annotations

import re
from dataclasses import dataclass

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(?:(?:([KMGTP])i?)?B\b|bytes)", re.IGNORECASE)
CONTEXT_BYTES = 1 << 30  # what a process holds besides its tensors: CUDA context and libraries
_S = r"(\d+(?:\.\d+)? ?(?:[KMGT]i?B|bytes))"
ALLOCATION = {
    "tried": re.compile(rf"(?:[Tt]ried to allocate|trying to allocate|memory allocating) {_S}"),
    "capacity": re.compile(rf"total capaci?ty of {_S}|{_S} total capacity|max allowed: {_S}"),
    "free": re.compile(rf"of which {_S} is free|{_S} free"),
    "allocated": re.compile(
        rf"memory {_S} is allocated by PyTorch|{_S} already allocated|MPS allocated: {_S}"
    ),
    "reserved": re.compile(rf"{_S} reserved in total|{_S} cached"),
    "unallocated": re.compile(rf"{_S} is reserved by PyTorch but unallocated"),
    "own": re.compile(rf"this process has {_S} memory in use"),
}


def memory_bytes(text: str) -> float | None:
    """Return a size such as ``9.71 GiB`` or ``512 bytes``."""
    found = SIZE.search(text)
    return float(found[1]) * UNITS[(found[2] or "").upper()] if found is not None else None


def memory_words(size: float) -> str:
    """Write a size the way torch does."""
    for unit in ("P", "T", "G", "M", "K"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.2f} {unit}iB"
    return f"{size:.0f} bytes"


@dataclass(frozen=True, slots=True)
class Allocation:
    """The numbers of an out-of-memory message, in bytes; 0 where it has none."""

    tried: float = 0.0
    capacity: float = 0.0
    free: float = 0.0
    allocated: float = 0.0
    reserved: float = 0.0
    unallocated: float = 0.0
    own: float = 0.0

    @property
    def loose(self) -> float:
        """What PyTorch holds without using it."""
        return self.unallocated or max(0.0, self.reserved - self.allocated)

    @property
    def words(self) -> str:
        """The numbers in brackets, as far as the message has them."""
        free = f"{memory_words(self.free)} free of {memory_words(self.capacity)}"
        parts = {
            f"{memory_words(self.tried)} requested": self.tried,
            free: self.capacity,
            f"{memory_words(self.allocated)} in tensors": self.allocated,
            f"{memory_words(self.loose)} reserved but unused": self.loose,
        }
        said = ", ".join(text for text, size in parts.items() if size)
        return f" ({said})" if said else ""

    @property
    def others(self) -> float:
        """What other processes hold, as far as the numbers tell."""
        if not self.capacity or not (self.own or self.allocated or self.reserved):
            return 0.0
        own = self.own or self.allocated + self.loose + CONTEXT_BYTES
        return max(0.0, self.capacity - self.free - own)


def read_allocation(message: str) -> Allocation:
    """Return every number of an out-of-memory message, old or new."""
    found = {}
    for name, pattern in ALLOCATION.items():
        match = pattern.search(message)
        text = next((g for g in match.groups() if g), "") if match else ""
        found[name] = memory_bytes(text) or 0.0
    return Allocation(**found)
