"""A log in blocks of whole lines, in bounded memory and whatever its encoding."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from traindx.model import Floats

BLOCK = 1 << 22
MAX_LINE = 1 << 16  # of what a line may hold; a longer one is cut
_PIECES = 1 << 20  # of a line that are told apart
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(slots=True)
class Block:
    """Pieces of a log, one per text line, and their places.

    A place is the number of the line; the pieces of a progress bar share a line and follow each
    other in its fraction.
    """

    text: bytes
    places: Floats


@dataclass(slots=True)
class Blocks:
    """The blocks of a file, and what was wrong with it."""

    path: Path
    size: int = BLOCK
    lines: int = 0
    cut: int = 0
    nulls: int = 0
    _rest: bytes = field(default=b"", repr=False)
    _is_skipping: bool = False
    _piece: int = 0

    def __iter__(self) -> Iterator[Block]:
        with self.path.open("rb") as file:
            for data in self._chunks(file):
                yield from self._whole_lines(data)
            if self._rest:
                yield self._block(self._rest)

    def _chunks(self, file: BinaryIO) -> Iterator[bytes]:
        head = file.read(4)
        encoding = next((name for bom, name in _WIDE if head.startswith(bom)), None)
        file.seek(3 if head.startswith(codecs.BOM_UTF8) else 0)
        if encoding is None:
            while data := file.read(self.size):
                yield data
            return
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        while data := file.read(self.size):
            yield decoder.decode(data).lstrip("\ufeff").encode("utf-8", errors="replace")

    def _whole_lines(self, data: bytes) -> Iterator[Block]:
        if self._is_skipping:
            newline = data.find(b"\n")
            if newline < 0:
                return
            data, self._is_skipping = data[newline:], False
        data = self._rest + data
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) > MAX_LINE:
            end = data.rfind(b"\r") + 1  # a bar of many megabytes is one line
        self._rest = data[end:]
        if len(self._rest) > MAX_LINE:
            self._rest, self._is_skipping = self._rest[:MAX_LINE], True
            self.cut += 1
        if end:
            yield self._block(data[:end])

    def _block(self, text: bytes) -> Block:
        if b"\0" in text:
            self.nulls += text.count(b"\0")
            text = text.replace(b"\0", b"")
        if b"\x08" in text:  # Keras goes back over its bar
            text = text.replace(b"\x08", b"\r")
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        if b"\r" in text:
            return self._pieces(text)
        first = self.lines + 1
        self.lines += text.count(b"\n")
        return Block(text, np.arange(first, self.lines + 2, dtype=np.float64))

    def _pieces(self, text: bytes) -> Block:
        raw = np.frombuffer(text, dtype=np.uint8)
        is_line = np.append(False, raw[(raw == 10) | (raw == 13)] == 10)
        lines = np.cumsum(is_line)
        order = np.arange(len(lines))
        starts = np.maximum.accumulate(np.where(is_line, order, 0))
        piece = order - starts + np.where(lines == 0, self._piece, 0)
        self._piece = int(piece[-1])
        places = self.lines + 1 + lines + np.minimum(piece, _PIECES - 1) / _PIECES
        self.lines += int(lines[-1])
        return Block(text.replace(b"\r", b"\n"), places)
