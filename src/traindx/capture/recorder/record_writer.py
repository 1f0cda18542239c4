"""The file of a process: JSON lines, appended; a kill costs the last half second at most."""

from __future__ import annotations

import json
import os
from math import isfinite
from threading import RLock
from time import perf_counter
from typing import Any

MAX_BYTES = 64 << 20
MAX_RECORDS = 4000  # of one kind
FLUSH_S = 0.5
BLOCK = 64  # steps per line
DIGITS = 7  # of seconds
DETAILED = 20000  # rows before steps are put together; each doubling lasts as long
ALWAYS = frozenset({"caught", "nonfinite", "stall", "counts", "process"})
COLUMNS = (
    "optimizer", "step", "time_s", "loss", "lr", "clip_norm", "clip_max", "scale", "micro", "batch",
    "data_s", "forward_s", "backward_s", "optimizer_s", "total_s",
)  # fmt: skip


class Writer:
    """Appends records to one file, in blocks, within a bounded size."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._open()
        self._lines: list[str] = []
        self._rows: list[tuple[Any, ...]] = []
        self._thinned: dict[Any, Thinned] = {}  # by optimizer
        self._written = 0
        self._flushed = perf_counter()
        self._counts: dict[str, int] = {}
        self._lock = RLock()  # the watchdog writes too

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | _CLOSE_ON_EXEC
        self._file = os.open(self.path, flags, 0o644)
        self._identity = _identity(self._file)

    def write(self, kind: str, record: dict[str, Any], *, at_once: bool = False) -> None:
        """Append a record; the rest of the block goes first, so that order is kept."""
        with self._lock:
            self._write(kind, record, at_once=at_once)

    def _write(self, kind: str, record: dict[str, Any], *, at_once: bool) -> None:
        seen = self._counts[kind] = self._counts.get(kind, 0) + 1
        is_full = self._written > MAX_BYTES or seen > MAX_RECORDS
        if is_full and kind not in ALWAYS:
            return
        self._close_block()
        self._lines.append(_encode({"k": kind, **record}))
        if at_once or perf_counter() - self._flushed > FLUSH_S:
            self.flush()

    def step(self, row: tuple[Any, ...]) -> None:
        """Append a step, in the order of COLUMNS."""
        with self._lock:
            self._step(row)

    def _step(self, row: tuple[Any, ...]) -> None:
        kept = self._thinned.setdefault(row[0], Thinned()).add(row)
        if kept is None:
            return
        if self._rows and len(kept) != len(self._rows[0]):
            self._close_block()
        self._rows.append(kept)
        if len(self._rows) >= BLOCK:
            self._close_block()
        if perf_counter() - self._flushed > FLUSH_S:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the operating system, which keeps it if the process is killed."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        self._close_block()
        if self._lines:
            data = "".join(self._lines).encode()
            self._lines.clear()
            self._written += len(data)
            if _identity(self._file) != self._identity:
                self._open()  # somebody has closed it, and the number may stand for another file
            while data:
                data = data[os.write(self._file, data) :]
        self._flushed = perf_counter()

    def close(self) -> None:
        """Write what is left."""
        for thinned in self._thinned.values():
            rest = thinned.rest()
            if rest is not None:
                self._close_block()
                self._rows.append(rest)
        self.flush()
        if _identity(self._file) == self._identity:
            os.close(self._file)

    def _close_block(self) -> None:
        if not self._rows:
            return
        names = (*COLUMNS, "loss_low", "loss_high", "nonfinite", "stride")
        columns = list(zip(*self._rows))
        block: dict[str, Any] = {"k": "steps", "stride": 1}
        for name, column in zip(names, columns):
            if name == "stride":
                block["stride"] = column[0]
            elif name.endswith("_s"):
                block[name] = [v if v is None else round(v, DIGITS) for v in column]
            elif any(value is not None for value in column):
                block[name] = column
        self._rows.clear()
        self._lines.append(_encode(block))


class Thinned:
    """Lets steps pass one by one at first; later one row stands for 2, 4, 8 … of them."""

    def __init__(self) -> None:
        self.stride = 1
        self._passed = 0
        self._held: list[tuple[Any, ...]] = []

    def add(self, row: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the row to write now, if there is one."""
        if self.stride == 1:
            self._count()
            return row
        self._held.append(row)
        return self.rest() if len(self._held) >= self.stride else None

    def rest(self) -> tuple[Any, ...] | None:
        """Return the row that stands for what is held: its last, with the extremes of the loss."""
        if not self._held:
            return None
        losses = [r[3] for r in self._held if isinstance(r[3], float)]
        finite = [x for x in losses if isfinite(x)]
        last = self._held[-1]
        extremes = (
            min(finite, default=None),
            max(finite, default=None),
            len(losses) - len(finite),
            len(self._held),
        )
        self._held.clear()
        self._count()
        return (*last, *extremes)

    def _count(self) -> None:
        self._passed += 1
        if self._passed >= DETAILED:
            self._passed = 0
            self.stride *= 2


def _identity(file: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(file)
    except OSError:  # it was closed
        return None
    return found.st_dev, found.st_ino


def _encode(record: dict[str, Any]) -> str:
    return _json.encode(record) + "\n"


def _plain(value: Any) -> Any:
    """Write what JSON has no word for: numbers of other libraries, and else the text of it."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)[:200]


_json = json.JSONEncoder(separators=(",", ":"), default=_plain)
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
