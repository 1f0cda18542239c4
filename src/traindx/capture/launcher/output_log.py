"""What the command printed, kept within bounds: the beginning, and the newest."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from threading import Lock

SEGMENT_BYTES = 64 << 20
NEWEST_KEPT = 3  # segments, besides the first
LONGEST_LINE = 64 << 10


class WholeLines:
    """Hands one of two streams on in whole lines, so that in the log they do not mix within one."""

    def __init__(self, append: Callable[[bytes], None]) -> None:
        self._append = append
        self._begun = b""

    def append(self, data: bytes) -> None:
        """Hand on what ends in a line's end, or is too long to wait for one."""
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end and len(self._begun) + len(data) > LONGEST_LINE:
            end = len(data)
        if end:
            self._append(self._begun + data[:end])
            self._begun = b""
        self._begun += data[end:]

    def close(self) -> None:
        """Hand on the rest."""
        if self._begun:
            self._append(self._begun)
            self._begun = b""


class OutputLog:
    """Appends to `output.log`, later to `output.2.log` and so on; those in the middle are dropped.

    A write that fails ends it: `complain` hears why, once, and nobody else notices.
    """

    def __init__(
        self, folder: Path, complain: Callable[[str], None], segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._folder = folder
        self._complain = complain
        self._segment_bytes = segment_bytes
        self._lock = Lock()
        self._streams: list[WholeLines] = []
        self._number = 1
        self._size = 0
        self._file: int | None = None
        self._try(self._open)

    def append(self, data: bytes) -> None:
        """Keep a piece of output."""
        with self._lock:
            if self._file is not None:
                self._try(lambda: self._append(data))

    def stream(self, *, is_alone: bool) -> Callable[[bytes], None]:
        """Return what keeps one of the command's streams: at once, or beside another in lines."""
        if is_alone:
            return self.append
        lines = WholeLines(self.append)
        self._streams.append(lines)
        return lines.append

    def close(self) -> None:
        """End the log; what comes later is not kept."""
        for lines in self._streams:
            lines.close()
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except OSError as error:
            if self._file is not None:
                os.close(self._file)
                self._file = None
            self._complain(f"the output is no longer recorded: {error.strerror or error}")

    def _append(self, data: bytes) -> None:
        if self._size >= self._segment_bytes:
            # a line stays whole, unless it is as long as a segment
            is_endless = self._size >= 2 * self._segment_bytes
            end = 0 if is_endless else data.find(b"\n") + 1
            if end or is_endless:
                self._write(data[:end])
                self._next_segment()
                data = data[end:]
        self._write(data)

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        rest = memoryview(data)
        while rest:
            written = os.write(self._file, rest)
            self._size += written
            rest = rest[written:]

    def _next_segment(self) -> None:
        assert self._file is not None
        os.close(self._file)
        self._file = None
        self._number += 1
        self._open()
        dropped = self._number - NEWEST_KEPT
        if dropped > 1:
            self._path(dropped).unlink(missing_ok=True)

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = os.open(self._path(self._number), flags, 0o644)
        self._size = 0

    def _path(self, number: int) -> Path:
        return self._folder / ("output.log" if number == 1 else f"output.{number}.log")
