"""The records of an event file, in blocks of bounded size.

A record is its length (8 bytes), the checksum of the length, the payload, and the checksum of the
payload. The length's checksum is verified always: after a wrong length nothing can be found again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from traindx.model.run import Ints
from traindx.readers.formats.tensorboard.checksum import masked

BLOCK = 8 << 20  # larger ones leave the caches, smaller ones have too few records of a layout
MAX_RECORD = 16 << 20  # longer ones are graphs and videos
MAX_KNOWN = 1 << 16
HEADER = 12
AROUND = HEADER + 4


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Some whole records: where each payload begins, its length, and the number of the first."""

    data: bytes
    starts: Ints
    lengths: Ints
    first: int


def payload_length(header: bytes) -> int | None:
    """Return the length that a record's header states, unless its checksum is wrong."""
    if len(header) < HEADER or masked(header[:8]) != int.from_bytes(header[8:12], "little"):
        return None
    return int.from_bytes(header[:8], "little")


class TFRecords:
    """The records of a file; `warnings` says afterwards what could not be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.warnings: list[str] = []
        self.number = 1
        self.overlong = 0
        self._known: dict[bytes, int] = {}

    def __iter__(self) -> Iterator[RecordBlock]:
        with self.path.open("rb") as file:
            yield from self._blocks(file)
        if self.overlong:
            said = f"{self.overlong} records longer than {MAX_RECORD >> 20} MB were left out"
            self.warnings.append(said)

    def _blocks(self, file: BinaryIO) -> Iterator[RecordBlock]:
        rest, wanted = b"", BLOCK
        while new := file.read(wanted):
            data = rest + new
            starts, end = self._walk(data)
            if len(starts):
                bounds = np.append(starts, end)
                lengths = np.diff(bounds) - AROUND
                yield RecordBlock(data, starts + HEADER, lengths, self.number)
                self.number += len(starts)
            rest, wanted = data[end:], BLOCK
            if len(rest) < HEADER:
                continue
            length = payload_length(rest[:HEADER])
            if length is None:
                self._stop(f"the length of record {self.number} is damaged", file, len(rest))
                return
            missing = length + AROUND - len(rest)
            if missing > os.fstat(file.fileno()).st_size - file.tell():
                break
            if length > MAX_RECORD:
                file.seek(missing, os.SEEK_CUR)
                rest = b""
                self.number += 1
                self.overlong += 1
            else:
                wanted = max(BLOCK, missing)
        if rest:
            self.warnings.append(
                f"it ends within record {self.number}: the run was killed as it wrote, or goes on"
            )

    def _walk(self, data: bytes) -> tuple[Ints, int]:
        """Return where whole records begin and where the last one ends."""
        starts: list[int] = []
        append, known = starts.append, self._known.get
        position = 0
        while True:  # the one loop over every record, hence so bare
            size = known(data[position : position + HEADER])
            if size is None:
                size = self._learn(data[position : position + HEADER])
                if size is None:
                    break
            append(position)
            position += size
        if position > len(data):
            position = starts.pop()
        return np.array(starts, dtype=np.int64), position

    def _learn(self, header: bytes) -> int | None:
        """Remember a header whose checksum is right: few lengths occur, each many times."""
        length = payload_length(header)
        if length is None:
            return None
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[header] = length + AROUND
        return length + AROUND

    def _stop(self, why: str, file: BinaryIO, unread: int) -> None:
        left = os.fstat(file.fileno()).st_size - file.tell() + unread
        self.warnings.append(f"{why}; the {left:,} bytes from there on could not be read")
