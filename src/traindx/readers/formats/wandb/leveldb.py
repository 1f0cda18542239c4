"""The framing of a W&B file: a LevelDB log of 32 KiB blocks, whole or cut off.

A record is split into fragments that never cross a block. Where a fragment is damaged, reading goes
on with the next block, as LevelDB does: what was lost is a bounded piece, and it is counted.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAGIC = b":W&B"
NUMBER = 0xBEE1.to_bytes(2, "little")
BLOCK = 32 << 10
HEADER = 7  # of the file, and of every fragment: checksum (4), length (2), type (1)
MAX_RECORD = 64 << 20  # a longer one is an upload or an attack
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


@dataclass(slots=True)
class Framing:
    """The records of a file, and what was wrong with it."""

    path: Path
    damaged: int = 0
    overlong: int = 0
    is_cut: bool = False

    def __iter__(self) -> Iterator[bytes]:
        parts: list[bytes] = []
        size = 0
        with self.path.open("rb") as file:
            for kind, data in self._fragments(file):
                if kind in (FULL, FIRST):
                    self.damaged += bool(parts)
                    parts, size = [], 0
                elif not parts:  # its beginning was lost, or it was too long
                    continue
                parts.append(data)
                size += len(data)
                if size > MAX_RECORD:
                    self.overlong += 1
                    parts = []
                elif kind in (FULL, LAST):
                    yield b"".join(parts)
                    parts, size = [], 0
        self.is_cut |= bool(parts)

    def _fragments(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        start = HEADER
        while block := file.read(BLOCK):
            while len(block) < BLOCK and (more := file.read(BLOCK - len(block))):
                block += more
            yield from self._in_block(block, start)
            start = 0

    def _in_block(self, block: bytes, at: int) -> Iterator[tuple[int, bytes]]:
        is_last = len(block) < BLOCK
        while at + HEADER <= len(block):
            length = int.from_bytes(block[at + 4 : at + 6], "little")
            kind = block[at + 6]
            end = at + HEADER + length
            if kind == 0 and length == 0 and not any(block[at : at + HEADER]):
                return  # the rest was allocated and never written
            if end > len(block) and is_last:
                self.is_cut = True
                return
            data = block[at + HEADER : end]
            stored = int.from_bytes(block[at : at + 4], "little")
            if end > len(block) or zlib.crc32(block[at + 6 : end]) != stored:
                self.damaged += 1
                return
            if FULL <= kind <= LAST:
                yield kind, data
            at = end
        self.is_cut |= is_last and at < len(block)

    def warnings(self) -> list[str]:
        """Return in words what could not be read."""
        said = []
        if self.damaged:
            said.append(f"{self.damaged} records are damaged (wrong checksum) and left out")
        if self.overlong:
            said.append(f"{self.overlong} records longer than {MAX_RECORD >> 20} MB were left out")
        if self.is_cut:
            said.append("it ends in the middle of a record: the run was killed or still writes")
        return said
