"""The file of one training process: a line per record, cut off wherever the process ended."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from traindx.model import recording
from traindx.model.recording import FORMAT, Counts, Process, Sample
from traindx.readers.formats.recording.recording_files import RANK_FILE
from traindx.readers.formats.recording.steps import MAX_ROWS, Steps, block_of
from traindx.readers.formats.recording.typed_json import Misfit, Odd, shape_of

MAX_LINE = 32 << 20
MAX_BYTES = 512 << 20  # the recorder stops long before
MAX_KIND_BYTES = 24 << 20  # of the records of one kind, as text
MAX_KIND = 5000
READER = "recording"

_KINDS: dict[str, tuple[str, type]] = {
    "model": ("models", recording.Model),
    "optimizer": ("optimizers", recording.Optimizer),
    "loader": ("loaders", recording.Loader),
    "epoch": ("epochs", recording.Epoch),
    "sample": ("samples", recording.Sample),
    "evaluation": ("evaluations", recording.Evaluation),
    "captured": ("captured", recording.CapturedStep),
    "fingerprint": ("fingerprints", recording.Fingerprint),
    "loaded": ("loads", recording.Loaded),
    "caught": ("caught", recording.Caught),
    "nonfinite": ("nonfinite", recording.NonFinite),
    "stall": ("stalls", recording.Stall),
}
_COLUMNS = ("grad_norms", "weight_norms", "update_ratios", "has_moved")
_OWN = frozenset({"path", "counts", *(name for name, _ in _KINDS.values())})

T = TypeVar("T")


class Ends(Generic[T]):
    """The first and the last of many things, within a weight; what lies between is counted."""

    def __init__(self, limit: float) -> None:
        self._half = limit / 2
        self._first: list[T] = []
        self._last: deque[tuple[float, T]] = deque()
        self._weights = [0.0, 0.0]
        self.left_out = 0

    def add(self, item: T, weight: float) -> None:
        """Keep an item as one of the first, or as the last so far."""
        if not self._last and self._weights[0] + weight <= self._half:
            self._first.append(item)
            self._weights[0] += weight
            return
        self._last.append((weight, item))
        self._weights[1] += weight
        while self._weights[1] > self._half and len(self._last) > 1:
            self._weights[1] -= self._last.popleft()[0]
            self.left_out += 1

    def __iter__(self) -> Iterator[T]:
        yield from self._first
        yield from (item for _, item in self._last)


def _records() -> dict[str, Ends[Any]]:
    return {kind: Ends(MAX_KIND_BYTES) for kind in _KINDS}


@dataclass(slots=True)
class ProcessRecords:
    """What the file of a process holds, and what is wrong with it."""

    process: Process
    steps: Steps
    header: int = 1  # the line that describes the process
    records: int = 0
    warnings: tuple[str, ...] = ()


class _Gathering:
    """Takes records one after the other."""

    def __init__(self, path: Path) -> None:
        named = RANK_FILE.fullmatch(path.name)
        rank, pid = (int(named[1]), int(named[2])) if named else (0, 0)
        self.process = Process(path=str(path), rank=rank, pid=pid)
        self.header = 1
        self.kept = _records()
        self.blocks: Ends[Any] = Ends(MAX_ROWS)
        self.odd: Odd = Counter()
        self.damaged: list[int] = []
        self.records = 0
        self.counts: Counts | None = None
        self.notes: list[str] = []
        self._names: dict[int, tuple[str, ...]] = {}

    def take(self, record: dict[str, Any], line: int, size: int) -> None:
        """Take one record; one of no known kind is meant for another reader than this one."""
        kind = record.get("k")
        self.records += 1
        try:
            if kind == "steps":
                block = block_of(record, line)
                if block is None:
                    raise Misfit
                self.blocks.add(block, block.shape[1])
            elif kind == "process":
                self._head(record, line)
            elif kind == "counts":
                self.counts = shape_of(Counts)({**record, "line": line}, self.odd)
            elif isinstance(kind, str) and kind in _KINDS:
                made = shape_of(_KINDS[kind][1])({**record, "line": line}, self.odd)
                made = self._named(made, record) if isinstance(made, Sample) else made
                self.kept[kind].add(made, max(size, MAX_KIND_BYTES / MAX_KIND))
        except Misfit:
            self.odd[f"{str(kind)[:40]} record"] += 1

    def _head(self, record: dict[str, Any], line: int) -> None:
        version = record.get("v")
        if isinstance(version, int) and version > FORMAT:
            self.notes.append(
                "a newer recorder wrote it; what this traindx does not know is left out"
            )
        told = {k: v for k, v in record.items() if k not in _OWN}
        given = {"rank": self.process.rank, "pid": self.process.pid, **told}
        self.process = shape_of(Process)({**given, "path": self.process.path}, self.odd)
        self.header = line

    def _named(self, sample: Sample, record: dict[str, Any]) -> Sample:
        """Give a sample the names of the one before where it leaves them out."""
        if "names" in record:
            self._names[sample.optimizer] = sample.names
        else:
            sample = replace(sample, names=self._names.get(sample.optimizer, ()))
        columns = (getattr(sample, name) for name in _COLUMNS)
        if any(column and len(column) != len(sample.names) for column in columns):
            raise Misfit
        return sample

    def result(self) -> ProcessRecords:
        """Return the process with everything that was taken."""
        found = {_KINDS[kind][0]: tuple(kept) for kind, kept in self.kept.items()}
        process = replace(self.process, counts=self.counts, **found)  # type: ignore[arg-type]
        return ProcessRecords(
            process,
            Steps(list(self.blocks)),
            self.header,
            self.records,
            tuple(self._warnings()),
        )

    def _warnings(self) -> Iterator[str]:
        yield from dict.fromkeys(self.notes)
        if self.damaged:
            count = len(self.damaged)
            what = "line is no record" if count == 1 else "lines are no records"
            yield f"{count} {what}, the first is line {self.damaged[0]}"
        if self.odd:
            shown = ", ".join(name for name, _ in self.odd.most_common(5))
            yield f"{self.odd.total()} values are of another kind than the format has: {shown}"
        for kind, kept in self.kept.items():
            if kept.left_out:
                yield f"{kept.left_out} records of kind {kind} in the middle were left out"
        if self.blocks.left_out:
            yield f"{self.blocks.left_out} blocks of steps in the middle were left out"


def read_process(path: Path) -> ProcessRecords:
    """Read the file of a process as far as it is written."""
    gathering = _Gathering(path)
    for number, line in _lines(path):
        record = _parse(line)
        if record is not None:
            gathering.take(record, number, len(line))
        elif line.strip() and line.endswith(b"\n"):  # a torn last line is no damage
            gathering.damaged.append(number)
    return gathering.result()


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with their numbers; of one that is too long, nothing."""
    read, number = 0, 0
    with path.open("rb") as file:
        while read < MAX_BYTES and (line := file.readline(MAX_LINE)):
            read += len(line)
            number += 1
            is_whole = line.endswith(b"\n") or len(line) < MAX_LINE
            while not line.endswith(b"\n") and len(line) == MAX_LINE and read < MAX_BYTES:
                line = file.readline(MAX_LINE)
                read += len(line)
            yield number, line if is_whole else b"(too long)\n"


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
