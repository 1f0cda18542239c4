"""A log in blocks of whole lines, in bounded memory and whatever its encoding."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from traindx.model.run import Floats, Ints

BLOCK = 1 << 23
MAX_LINE = 1 << 16  # of what a line may hold; a longer one is cut
_TQDM_END = re.compile(rb"\[\d+:\d\d(?::\d\d)?<[^\]\r\n]*\](?=[^\r\n])")
_LONG = 1000  # bytes; hardly a line that reports once is longer
_REPORT_START = re.compile(
    rb"(?<=[\d%)\]])(?=(?:[Ee]pisode|(?:Train )?[Ee]poch|[Ss]tep|[Ii]ter(?:ation)?)[ :\[#=]{1,3}\d)"
    rb"|(?<=\S) *(?=\x1b\[1m *\d+/\d+\x1b\[0m )|(?<=\S) +(?=\d+/\d+ \[[=>.]{8,}\])"
)
_PIECES = 1 << 20  # of a line that are told apart
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def wide_encoding(head: bytes) -> str | None:
    """Return the encoding of a file whose characters take several bytes each, from its mark."""
    return next((name for bom, name in _WIDE if head.startswith(bom)), None)


def separate(text: bytes) -> bytes:
    """End every refresh of a progress bar with a carriage return, also where it was lost.

    Terminals, notebooks and copies drop them; the next refresh or message then follows at once.
    """
    if b"\x08" in text:  # Keras goes back over its bar
        text = text.replace(b"\x08", b"\r")
    if b"|" in text and b"%|" in text:
        text = _TQDM_END.sub(rb"\g<0>\r", text)
    return text


class LogBlock:
    """Pieces of a log between line ends, and their places.

    A place is the number of the line; the pieces of a progress bar share a line and follow each
    other in its fraction.
    """

    def __init__(self, text: bytes, first_line: int) -> None:
        self.text = text
        self.raw = np.frombuffer(text, dtype=np.uint8)
        self.ends: Ints = np.append(np.flatnonzero(self.raw == 10), len(text))
        self.starts: Ints = np.append(0, self.ends[:-1] + 1)
        self.places: Floats = np.arange(first_line, first_line + len(self.ends), dtype=np.float64)

    def __len__(self) -> int:
        """Count the pieces, without the empty one after the last line."""
        return len(self.ends) - int(self.starts[-1] == self.ends[-1])

    def __getitem__(self, i: int) -> bytes:
        return self.text[self.starts[i] : self.ends[i]]


@dataclass(slots=True)
class Blocks:
    """The blocks of a file, and what was wrong with it."""

    path: Path
    size: int = BLOCK
    start: int = 0  # of the part that is read, in bytes
    end: int | None = None
    lines: int = 0
    cut: int = 0
    nulls: int = 0
    _rest: bytes = field(default=b"", repr=False)
    _is_skipping: bool = False
    _piece: int = 0

    def __iter__(self) -> Iterator[LogBlock]:
        with self.path.open("rb") as file:
            for data in self._chunks(file):
                yield from self._whole_lines(data)
            if self._rest:
                yield self._block(self._rest)

    def _chunks(self, file: BinaryIO) -> Iterator[bytes]:
        head = file.read(4)
        encoding = wide_encoding(head)
        file.seek(self.start or (3 if head.startswith(codecs.BOM_UTF8) else 0))
        if encoding is None:
            while data := file.read(self._left(file.tell())):
                yield data if data.endswith(b"\n") else data + self._rest_of_line(file)
            return
        decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        while data := file.read(self.size):
            yield decoder.decode(data).lstrip("\ufeff").encode("utf-8", errors="replace")

    def _rest_of_line(self, file: BinaryIO) -> bytes:
        left = self._left(file.tell())
        return file.readline(min(left, MAX_LINE)) if left else b""

    def _left(self, position: int) -> int:
        return self.size if self.end is None else min(self.size, max(0, self.end - position))

    def _whole_lines(self, data: bytes) -> Iterator[LogBlock]:
        if self._is_skipping:
            newline = data.find(b"\n")
            if newline < 0:
                return
            data, self._is_skipping = data[newline:], False
        if self._rest:
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

    def _block(self, text: bytes) -> LogBlock:
        if b"\0" in text:
            self.nulls += text.count(b"\0")
            text = text.replace(b"\0", b"")
        text = separate(text)
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        if b"\r" in text:
            return self._pieces(text)
        block = LogBlock(text, self.lines + 1)
        if int(np.max(block.ends - block.starts)) > _LONG:
            # reports on one line that lost their carriage returns
            parted = b"\n".join(
                _REPORT_START.sub(b"\r", line) if len(line) > _LONG else line
                for line in text.split(b"\n")
            )
            if b"\r" in parted:
                return self._pieces(parted)
        self.lines += len(block.ends) - 1
        return block

    def _pieces(self, text: bytes) -> LogBlock:
        raw = np.frombuffer(text, dtype=np.uint8)
        is_line = np.append(False, raw[(raw == 10) | (raw == 13)] == 10)
        lines = np.cumsum(is_line)
        order = np.arange(len(lines))
        starts = np.maximum.accumulate(np.where(is_line, order, 0))
        piece = order - starts + np.where(lines == 0, self._piece, 0)
        self._piece = int(piece[-1])
        block = LogBlock(text.replace(b"\r", b"\n"), 1)
        block.places = self.lines + 1 + lines + np.minimum(piece, _PIECES - 1) / _PIECES
        self.lines += int(lines[-1])
        return block
