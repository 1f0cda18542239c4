"""Text out of files in any encoding, in bounded pieces; what was left out is known afterwards."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from traindx.errors import UnreadableArtifact
from traindx.model.run import Artifact, Event

MAX_BYTES = 256 << 20  # a metrics file beyond this is read at its beginning and its end
MAX_LINE = 1 << 20  # a longer line is no row, record or message
_BLOCK = 1 << 18
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(data: bytes) -> str:
    """Return bytes as text whatever their encoding; a stray byte costs only its own line."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding, errors="replace").replace("\0", "")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\n".join(_decode_line(line) for line in data.split(b"\n"))
    return text.replace("\0", "") if "\0" in text else text


def _decode_line(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def is_text(head: bytes) -> bool:
    """Tell whether the head of a file is text of any kind."""
    if head.startswith(tuple(bom for bom, _ in _BOMS)):
        return True
    sample = head[:8192]
    # text has tabs, line ends, form feeds, escapes and backspaces; a few lost bytes are damage
    control = sum(sample.count(bytes([c])) for c in range(32) if c not in b"\t\n\r\f\x1b\x08")
    return control <= 0.02 * len(sample)


def read_text(path: Path, limit: int) -> tuple[str, bool]:
    """Return the text of a file up to a number of bytes, and whether there was more."""
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if not data.strip():
        raise UnreadableArtifact(str(path), "it is empty", "a file that the run wrote to")
    if not is_text(data):
        raise UnreadableArtifact(str(path), "it is binary", "a text file such as a log or a table")
    return decode(data[:limit]), len(data) > limit


class LineBlocks:
    """The lines of a file in blocks, each with the number of its first line."""

    def __init__(self, path: Path, limit: int = MAX_BYTES) -> None:
        self.path = path
        self.limit = limit
        self.overlong = 0
        self.bytes_left_out = 0
        self.ends_with_newline = True

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        with self.path.open("rb") as file:
            start = file.read(4)
            file.seek(0)
            if start.startswith(tuple(bom for bom, _ in _BOMS[1:])):
                yield 1, decode(file.read(self.limit)).replace("\r\n", "\n").split("\n")
                return
            yield from self._blocks(file)

    def _blocks(self, file: BinaryIO) -> Iterator[tuple[int, list[str]]]:
        size = self.path.stat().st_size
        number, rest, is_skipping = 1, b"", False
        while data := file.read(_BLOCK):
            data = (rest + data).replace(b"\r\n", b"\n")
            if b"\n" not in data and b"\r" in data:
                data = data.replace(b"\r", b"\n")
            whole, newline, rest = data.rpartition(b"\n")
            if newline:
                lines = [b"", *whole.split(b"\n")[1:]] if is_skipping else whole.split(b"\n")
                is_skipping = False
                yield number, self._decode(lines)
                number += len(lines)
            if len(rest) > MAX_LINE:
                self.overlong += not is_skipping
                rest, is_skipping = b"", True
            if size > self.limit and self.bytes_left_out == 0 and file.tell() >= self.limit // 2:
                number += self._skip(file, size - self.limit // 2)
                rest, is_skipping = b"", True
        self.ends_with_newline = not rest
        if rest:
            yield number, self._decode([rest])

    def _decode(self, lines: list[bytes]) -> list[str]:
        if max(map(len, lines)) > MAX_LINE:
            self.overlong += sum(len(line) > MAX_LINE for line in lines)
            lines = [b"" if len(line) > MAX_LINE else line for line in lines]
        text = decode(b"\n".join(lines))
        return text.split("\n")

    def _skip(self, file: BinaryIO, to: int) -> int:
        """Go on near the end, for that is where a run fails; count the lines between."""
        self.bytes_left_out = to - file.tell()
        lines = 0
        while (left := to - file.tell()) > 0:
            data = file.read(min(left, _BLOCK))
            if not data:
                break
            lines += data.count(b"\n")
        return lines

    def warnings(self) -> list[str]:
        """Return what was left out, in words."""
        said = []
        if self.overlong:
            said.append(f"{self.overlong} lines longer than {MAX_LINE >> 20} MB were left out")
        if self.bytes_left_out:
            said.append(
                f"{self.bytes_left_out >> 20} MB in the middle of the file were left out;"
                f" {self.limit >> 20} MB were read"
            )
        return said


def damage(path: Path, reader: str, warnings: Sequence[str]) -> tuple[Artifact, tuple[Event, ...]]:
    """Return the artifact that was read and an event for everything that was wrong with it."""
    label = str(path)
    events = tuple(Event("warning", text, label) for text in warnings)
    return Artifact(label, reader, tuple(warnings)), events
