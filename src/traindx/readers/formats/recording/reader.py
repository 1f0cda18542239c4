"""A recording as a run: the command, its processes, their metrics, failures and settings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from traindx.errors import UnreadableArtifact
from traindx.model.merging import merge_recordings
from traindx.model.recording import Caught, Optimizer, Process, Recording
from traindx.model.run import (
    Architecture,
    Artifact,
    Config,
    Event,
    Failure,
    Frame,
    Run,
    Series,
    Setting,
    Tensor,
)
from traindx.readers.formats.recording.command import Command, read_command
from traindx.readers.formats.recording.copies import copied_sources
from traindx.readers.formats.recording.process_file import READER, ProcessRecords, read_process
from traindx.readers.formats.recording.recording_files import HEAD_BYTES, RANK_FILE, kind_of_head
from traindx.readers.formats.recording.step_series import curves_of
from traindx.readers.formats.settings import literal
from traindx.registry import reader

MAX_PROCESSES = 256
MAX_EVENTS = 50
EPOCH_1980 = 3e8  # a time before it is seconds since the process began
_NOT_SET = frozenset({"params", "parameters"})  # of a group: its members, or how many they are
_SET = re.compile(r"(?:--)?([A-Za-z_][\w.-]{0,60})=(.{1,200})")
_OPTION = re.compile(r"--([A-Za-z_][\w.-]{0,60})")


def sniff(path: Path, head: bytes) -> float:
    """Recognise the file of a recorded command, or of one of its processes."""
    return 0.99 if kind_of_head(head[:HEAD_BYTES]) else 0.0


@reader(READER, sniff)
def read(path: Path) -> Run:
    """Read a whole recording from the file of its command, or one process from its own."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if kind_of_head(head) != "run":
        told = read_process(path)
        if not told.records:
            raise UnreadableArtifact(str(path), "it is no recording", "the folder of the recording")
        return _run(path, [told], None)
    command = read_command(path)
    found: list[ProcessRecords] = []
    for own in _rank_files(path.parent):
        try:
            found.append(read_process(own))
        except OSError as error:
            command.warnings.append(f"{own.name} cannot be read: {error.strerror or error}")
    return _run(path, found, command)


def _rank_files(folder: Path) -> list[Path]:
    named = [
        (int(match[1]), int(match[2]), file)
        for file in folder.iterdir()
        if (match := RANK_FILE.fullmatch(file.name)) and file.is_file()
    ]
    return [file for _, _, file in sorted(named)[:MAX_PROCESSES]]


def _run(path: Path, found: list[ProcessRecords], command: Command | None) -> Run:
    ending = command.ending if command is not None else None
    recording = merge_recordings([Recording(tuple(t.process for t in found), ending)])
    processes = recording.processes if recording is not None else ()
    order = {process.path: i for i, process in enumerate(processes)}
    found.sort(key=lambda t: order[t.process.path])
    sources, unread = copied_sources(path.parent)
    artifacts = [Artifact(t.process.path, READER, t.warnings) for t in found]
    failures = [f for t in found for f in _failures(t.process)]
    events = [e for t in found for e in _events(t.process)]
    if command is not None:
        artifacts.insert(0, Artifact(str(path), READER, (*command.warnings, *unread)))
        events += command.events()
        failures += [] if failures else command.crashes()
    events = [Event("warning", w, a.path) for a in artifacts for w in a.warnings] + events
    return Run(
        name=path.parent.name or path.stem,
        series={s.name: s for s in _series(found)},
        events=tuple(events),
        failures=tuple(failures),
        sources=sources,
        config=Config(tuple(s for t in found[:1] for s in _settings(t))),
        architecture=_architecture(found[0].process) if found else None,
        artifacts=tuple(artifacts),
        recording=recording,
    )


def _series(found: Sequence[ProcessRecords]) -> Iterator[Series]:
    """Yield the metrics of every process; only those of the main one have the plain names."""
    ranks: set[int] = set()
    for told in found:
        rank = told.process.rank
        prefix = "" if rank == 0 else f"ranks/{rank}/"
        if rank in ranks:  # started again, or one training after the other
            prefix = f"processes/{told.process.pid}/"
        ranks.add(rank)
        yield from curves_of(told, prefix, with_layers=told is found[0])


def _failures(process: Process) -> Iterator[Failure]:
    for caught in process.caught:
        frames = tuple(Frame(p.file, p.line, p.function, p.code) for p in caught.places)
        yield Failure(
            caught.type,
            caught.message,
            process.path,
            f"line {caught.line}",
            frames,
            process.rank if process.world_size > 1 else None,
            float(caught.step),
            _time_of(caught, process),
        )


def _time_of(caught: Caught, process: Process) -> float | None:
    time_s = caught.time_s if caught.time_s > EPOCH_1980 else caught.time_s + process.started_s
    return time_s if math.isfinite(time_s) else None


def _events(process: Process) -> list[Event]:
    found: list[tuple[str, str, int, int]] = []
    counts = process.counts
    if counts is not None and counts.why_off:
        text = f"the recorder turned itself off: {counts.why_off}"
        found.append(("warning", text, counts.line, counts.steps))
    for broken in process.nonfinite:
        where = broken.op or broken.module or broken.phase
        text = f"no number in the {broken.seen_in}" + (f", first in {where}" if where else "")
        found.append(("non-finite", text, broken.line, broken.step))
    for stall in process.stalls:
        ended = "went on after" if stall.is_over else "no progress for"
        found.append(("stall", f"{ended} {stall.waited_s:.0f} s", stall.line, stall.step))
    rank = f"rank {process.rank}: " if process.world_size > 1 else ""
    return [
        Event(kind, rank + text, process.path, f"line {line}", float(step))
        for kind, text, line, step in found[:MAX_EVENTS]
    ]


def _settings(told: ProcessRecords) -> Iterator[Setting]:
    process = told.process
    first: dict[int, Optimizer] = {}
    for optimizer in process.optimizers:
        first.setdefault(optimizer.id, optimizer)
    for i, optimizer in enumerate(first.values()):
        prefix = f"optimizer{optimizer.id}" if i else "optimizer"
        for key, value in _group_settings(optimizer):
            yield Setting(f"{prefix}.{key}", value, process.path, f"line {optimizer.line}")
    for key, value in _arguments(process.argv):
        yield Setting(key, value, process.path, f"line {told.header}")


def _group_settings(optimizer: Optimizer) -> Iterator[tuple[str, Any]]:
    """Yield the settings of the first group, and where the others differ from it."""
    yield "type", optimizer.type
    first = optimizer.groups[0] if optimizer.groups else {}
    for number, group in enumerate(optimizer.groups[:20]):
        for key, value in group.items():
            is_plain = isinstance(value, (bool, int, float, str)) or key == "betas"
            if is_plain and (number == 0 or first.get(key) != value) and key not in _NOT_SET:
                yield key if number == 0 else f"group{number}.{key}", value


def _arguments(argv: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield what a command line sets: `--lr 0.1`, `--lr=0.1`, `optimizer.lr=0.1`."""
    words = [*argv[1:200], ""]
    for word, following in pairwise(words):
        if match := _SET.fullmatch(word):
            yield match[1].replace("-", "_"), literal(match[2])
        elif (match := _OPTION.fullmatch(word)) and following and not following.startswith("--"):
            yield match[1].replace("-", "_"), literal(following[:200])


def _architecture(process: Process) -> Architecture | None:
    latest = {model.id: model for model in process.models}
    model = max(latest.values(), key=lambda m: len(m.parameters), default=None)
    if model is None or not model.parameters:
        return None
    tensors = tuple(Tensor(p.name, p.shape, p.dtype) for p in model.parameters)
    return Architecture(tensors, process.path, float(model.step))
