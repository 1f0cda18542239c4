"""The reader of console logs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from traindx.errors import UnreadableArtifact
from traindx.model.merging import resolve
from traindx.model.run import Config, Event, Failure, Run
from traindx.readers.formats.console.blocks import MAX_LINE, Blocks, separate
from traindx.readers.formats.console.decimals import with_decimals
from traindx.readers.formats.console.grammar import learn
from traindx.readers.formats.console.log_scan import MAX_KINDS, LogScan
from traindx.readers.formats.console.notes import LogNotes
from traindx.readers.formats.console.numbers import MASK, collapse
from traindx.readers.formats.console.parts import scan_log
from traindx.readers.formats.console.plan import DIGIT, LinePlan
from traindx.readers.formats.console.printed import settings_of
from traindx.readers.formats.console.tables import tellings_of_tables
from traindx.readers.formats.console.timeline import (
    Counting,
    counting_of,
    series_of,
    tellings_of,
    training_began,
)
from traindx.readers.formats.console.tracks import MAX_SHEETS
from traindx.readers.formats.console.vocabulary import measures
from traindx.readers.outputs.attached import with_outputs
from traindx.readers.outputs.log import _SIGNS, shows_outputs
from traindx.readers.text import damage, decode, is_text
from traindx.registry import reader
from traindx.tracebacks import parse_failures

PLAIN = 0.1  # for text that only may be a log
SURE = 0.6  # no more than this: a table or a document of numbers belongs to its own reader
SNIFFED = 1 << 16
SNIFFED_LINES = 400


def sniff(path: Path, head: bytes) -> float:
    """Say how sure it is that a file is what a run printed."""
    if b"\0" in head and not is_text(head):
        head = head.replace(b"\0", b"")  # several writers, or a file cut while it was written
        if _is_strange(head):
            return 0.0
    if not head.strip() or not is_text(head):
        return 0.0
    sample = separate(decode(head[:SNIFFED]).encode("utf-8", errors="replace"))
    sample = sample.replace(b"\r", b"\n")
    lines = [line for line in sample.split(b"\n")[:SNIFFED_LINES] if line.strip()]
    plans = [learn(collapse(line.translate(MASK))) for line in lines]
    told = sum(_reports(plan) for plan in plans)
    if b"Traceback (most recent call last)" in sample:
        return SURE
    if told == 0:
        if shows_outputs(sample):
            return 0.4
        return PLAIN if any(b" " in line.strip() for line in lines) else PLAIN / 2
    return 0.3 if told == 1 else SURE if told > 0.05 * len(lines) else 0.4


def _is_strange(head: bytes) -> bool:
    """Tell the bytes of numbers from text in whatever encoding: too few of them are letters."""
    sample = head[:8192]
    plain = len(sample.translate(None, bytes(range(128))))
    return plain > 0.2 * len(sample) and "\ufffd" in sample[:-4].decode("utf-8", errors="replace")


def _reports(plan: LinePlan) -> bool:
    """Tell whether a line reports on training."""
    known = any(measures(f.name.replace(DIGIT, "0")) for f in plan.fields)
    return known or (plan.epoch is not None and (plan.is_bar or plan.total is not None))


@reader("console", sniff)
def read(path: Path) -> Run:
    """Read everything that a run printed: metrics, settings, events, errors."""
    _refuse_unreadable(path)
    scan = LogScan(Blocks(path), signs=[pattern for _, _, pattern in _SIGNS])
    scan_log(scan)
    label = str(path)
    tables = tellings_of_tables(scan.ledger, scan.notes)
    told = tellings_of(scan.ledger, scan.notes) + tables
    counting = counting_of(told)
    series = with_decimals(resolve(series_of(told, counting, scan.notes, label)), path)
    artifact, events = damage(path, "console", _warnings(scan))
    run = Run(
        name=path.stem,
        series=series,
        events=(*events, *_events(scan.notes, counting, label)),
        failures=_failures(scan.notes, counting, label),
        config=Config(settings_of(path, training_began(told))),
        artifacts=(artifact,),
    )
    # the outputs of a model need a pass of their own, which most logs have no use for
    return with_outputs(run, path) if scan.has_signs else run


def _refuse_unreadable(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(SNIFFED)
    if not head.strip(b"\0 \t\r\n") and path.stat().st_size <= len(head):
        raise UnreadableArtifact(str(path), "it is empty", "a log that the run wrote to")
    if not is_text(head.replace(b"\0", b"")):
        why = "it is binary"
        raise UnreadableArtifact(str(path), why, "the text that the run printed, such as its log")


def _warnings(scan: LogScan) -> list[str]:
    said = []
    if scan.blocks.cut:
        said.append(f"{scan.blocks.cut} lines longer than {MAX_LINE >> 10} kB were cut")
    if scan.blocks.nulls:
        said.append(f"{scan.blocks.nulls} null bytes were left out")
    thinned = [s for s in scan.ledger.sheets.values() if s.seen > s.count]
    if thinned:
        said.append(
            f"{sum(len(s.told) for s in thinned)} series were thinned to at most"
            f" {scan.ledger.limit} points each; extremes and the onset of values that are not"
            " finite were kept"
        )
    if scan.is_cut_short:
        said.append(f"reading stopped after line {scan.blocks.lines}, for the time was up")
    if scan.unlearnt:
        said.append(
            f"{scan.unlearnt} lines were not searched: the log has more than {MAX_KINDS} kinds of"
            " lines"
        )
    if scan.ledger.refused:
        said.append(f"more than {MAX_SHEETS} kinds of lines with metrics; the rest was left out")
    return said


# what TensorBoard prints of itself while somebody looks at a run
_SERVER = re.compile(
    r"TensorBoard caught SIG|plugin_event_multiplexer\.py|tensorboard.{0,40} http://"
)


def _events(notes: LogNotes, counting: Counting, artifact: str) -> list[Event]:
    events = []
    for noted in notes.happenings:
        if _SERVER.search(noted.text):
            continue
        step, epoch = counting.moment(noted.counters)
        text = noted.text if noted.count == 1 else f"{noted.text} ({noted.count} times)"
        locator = f"line {int(noted.place)}"
        events.append(Event(noted.kind, text, artifact, locator, step, epoch))
    return events


def _failures(notes: LogNotes, counting: Counting, artifact: str) -> tuple[Failure, ...]:
    found: list[Failure] = []
    known: set[tuple[str, str]] = set()
    for window in notes.windows:
        for failure in parse_failures("\n".join(window.lines), artifact, window.first):
            if (failure.locator, failure.type) in known:
                continue  # two windows that overlap where two parts of a log meet
            known.add((failure.locator, failure.type))
            line = failure.locator.removeprefix("line ")
            counters = window.counters(int(line) if line.isdigit() else window.first)
            step = None if counters is None else counting.moment(counters)[0]
            found.append(failure if failure.step is not None else replace(failure, step=step))
    return tuple(found)
