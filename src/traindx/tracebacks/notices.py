"""Failures that are no tracebacks: crashes below Python, torchrun's summary, pytest's report."""

from __future__ import annotations

import re
from collections.abc import Sequence

from traindx.model.run import Frame
from traindx.tracebacks import patterns
from traindx.tracebacks.bare_lines import Line
from traindx.tracebacks.exception_messages import ExceptionBlock, read_message

ASSERT = re.compile(r"(\S{1,400}\.(?:cuh?|cpp|h|hip|inl)):(\d{1,9}):? ")
ASSERT_GAP = 50  # lines between two reports of one launch; other ranks print in between

TERMINATE = re.compile(
    r"terminate called (?:after throwing an instance of '([^']{1,200})'|without an active)"
)
LIBCXX = re.compile(
    r"libc\+\+abi: terminating (?:with|due to) uncaught exception of type ([\w:]{1,200}): ?(.*)"
)
WHAT = re.compile(r"\s{0,8}what\(\):\s{0,4}(.*)")
FATAL = "Fatal Python error: "
# torch's own word, in a line of its log, often behind a progress bar; the crash may come much later
WATCHDOG = re.compile(
    r"(?:\[Rank (\d{1,6})\] )?(Watchdog caught collective operation timeout: Work.*)"
)
THREAD = re.compile(r"(Current thread|Thread) 0x[0-9a-fA-F]{1,32}\b.*most recent call first")
# what the loader says of its workers, where a program prints it without the name of the exception
WORKER = re.compile(
    r"(?:ERROR: )?(Unexpected (?:bus error|segmentation fault)[\w ()]{0,40} in worker\..*"
    r"|DataLoader worker \(pid(?:\(s\))? [\d, ]{1,80}\) (?:is killed by|exited unexpectedly).*)"
)

# the last word of DeepSpeed's and of torch's launcher on a process that is gone, unless it ended
# well or by hand
GONE = re.compile(
    r"exits with return code = (?!0\b|-2\b)(?P<code>-?\d{1,3})\b"
    r"|failed \(exitcode: (?!0\b|-2\b)(?P<status>-?\d{1,3})\) local_rank: \d{1,6} \(pid: \d{1,9}\)"
)

ENDED = "A process ended with exitcode"

ENTRY = re.compile(r"\[\d{1,6}\]:\s*$")
FIELD = re.compile(r"\s{1,8}(time|host|rank|exitcode|error_file|traceback)\s{0,8}: ?(.*)$")
ENTRY_RANK = re.compile(r"\d{1,6}")

PYTEST_ERROR = re.compile(r"E {2,}\S")
PYTEST_PLACE = re.compile(r"([^\s:][^:]*\.py):(\d{1,9}):(?: in ([\w.<>]+)| ([\w.]+))?\s*$")


def match_assert(text: str) -> str | None:
    """Return the site of an assertion that failed in a kernel, the same for all its threads."""
    if "Assertion" not in text:
        return None
    found = ASSERT.match(text.lstrip())
    at = text.find("Assertion")
    if found is None or "failed" not in text[at:] or "thread" not in text[:at]:
        return None
    return f"{found[1]}:{found[2]} {text[at:]}"


def read_asserts(lines: Sequence[Line]) -> tuple[list[ExceptionBlock], list[Line]]:
    """Return one block per kernel assertion with its count, and the lines without them."""
    blocks: list[ExceptionBlock] = []
    rest: list[Line] = []
    counts: list[int] = []
    last: dict[str, tuple[int, int]] = {}  # site: index of its block, line of its last report
    for line in lines:
        site = match_assert(line.text)
        if site is None:
            rest.append(line)
            continue
        index, seen = last.get(site, (-1, 0))
        if index < 0 or line.number - seen > ASSERT_GAP:
            index = len(blocks)
            text = line.text.strip()
            blocks.append(
                ExceptionBlock("DeviceAssert", text, line.number, line.number, 0, (), line.rank)
            )
            counts.append(0)
        counts[index] += 1
        last[site] = (index, line.number)
    for block, count in zip(blocks, counts, strict=True):
        if count > 1:
            block.message += f" (first of {count} threads)"
    return blocks, rest


def read_crash(lines: Sequence[Line], at: int) -> ExceptionBlock | None:
    """Return the crash below Python that a line reports."""
    line = lines[at]
    text = line.text.strip()
    if text.startswith(FATAL):
        frames, end = _read_threads(lines, at + 1)
        return ExceptionBlock(
            "FatalPythonError", text[len(FATAL) :], line.number, line.number, end, frames, line.rank
        )
    if (found := TERMINATE.match(text)) is not None:
        return _read_what(lines, at, found[1] or "terminate")
    if (found := LIBCXX.match(text)) is not None:
        message, end = read_message(lines, at, found[2], line.indent, True)
        return ExceptionBlock(found[1], message, line.number, line.number, end, (), line.rank)
    if (found := WATCHDOG.search(text)) is not None:
        rank = line.rank if found[1] is None else int(found[1])
        return ExceptionBlock(
            "DistBackendError", found[2], line.number, line.number, at + 1, (), rank
        )
    if (found := WORKER.match(text)) is not None:
        message, end = read_message(lines, at, found[1], line.indent, True)
        kind = "WorkerDeath" if message.startswith("Unexpected") else "RuntimeError"
        return ExceptionBlock(kind, message, line.number, line.number, end, (), line.rank)
    if (found := GONE.search(text)) is not None:
        said = f"{ENDED}: {found['code'] or found['status']}"
        return ExceptionBlock("ProcessExitedException", said, line.number, line.number, at + 1)
    if (death := patterns.match_death(line.text)) is not None:
        rank = line.rank if death[1] is None else death[1]
        return ExceptionBlock(death[0], text, line.number, line.number, at + 1, (), rank)
    return None


def is_gone(blocks: Sequence[ExceptionBlock]) -> bool:
    """Tell whether blocks are no more than a launcher's word on a process that is gone."""
    return bool(blocks) and all(b.message.startswith(ENDED) for b in blocks)


def _read_what(lines: Sequence[Line], at: int, kind: str) -> ExceptionBlock:
    line = lines[at]
    message, end = "", at + 1
    found = WHAT.match(lines[end].text) if end < len(lines) else None
    if found is not None:
        message, end = read_message(lines, end, found[1], line.indent, True)
    return ExceptionBlock(kind, message, line.number, line.number, end, (), line.rank)


def _read_threads(lines: Sequence[Line], at: int) -> tuple[tuple[Frame, ...], int]:
    """Return the frames of the thread that crashed, oldest first, and the first line after all."""
    frames: list[Frame] = []
    is_current = False
    while at < len(lines):
        text = lines[at].text
        thread = THREAD.match(text)
        frame = patterns.match_frame(text)
        if thread is not None:
            is_current = thread[1] == "Current thread"
        elif frame is not None and is_current:
            frames.append(frame)
        elif frame is None and text and not text.startswith((" ", "Python runtime state", "<no ")):
            break
        at += 1
    return tuple(reversed(frames)), at


def is_entry(lines: Sequence[Line], at: int) -> bool:
    """Tell whether a line opens a child's entry in torchrun's summary."""
    if ENTRY.match(lines[at].text) is None or at + 1 >= len(lines):
        return False
    return FIELD.match(lines[at + 1].text) is not None


def read_entry(lines: Sequence[Line], at: int) -> ExceptionBlock:
    """Return one child of torchrun's summary; a traceback in it is left to be read after it."""
    start, rank, kept = at, lines[at].rank, []
    place = lines[at].number
    at += 1
    while at < len(lines) and (found := FIELD.match(lines[at].text)) is not None:
        if patterns.is_heading(lines[at].text):
            break
        if found[1] == "rank" and (given := ENTRY_RANK.match(found[2])) is not None:
            rank = int(given[0])
        if found[1] == "exitcode":
            place = lines[at].number
        kept.append(lines[at].text.strip())
        at += 1
    block = ExceptionBlock(
        "ChildFailedError", "\n".join(kept), lines[start].number, place, at, (), rank
    )
    block.is_wrapper = at < len(lines) and patterns.is_heading(lines[at].text)
    return block


def match_pytest_frame(text: str) -> Frame | None:
    """Return the frame that pytest names between two pieces of code."""
    found = PYTEST_PLACE.match(text) if ".py:" in text else None
    if found is None or found[4]:
        return None
    return Frame(found[1], int(found[2]), found[3] or "")


def read_pytest(
    lines: Sequence[Line], at: int, frames: Sequence[Frame]
) -> tuple[ExceptionBlock | None, int]:
    """Return the exception in the lines that pytest marks with ``E``."""
    start, kept = at, []
    while at < len(lines) and (lines[at].text == "E" or lines[at].text.startswith("E  ")):
        kept.append(lines[at].text[1:])
        at += 1
    indent = len(kept[0]) - len(kept[0].lstrip())
    message = "\n".join(t[min(indent, len(t) - len(t.lstrip())) :] for t in kept)
    named = patterns.match_exception(message.split("\n", 1)[0])
    if named is not None and patterns.is_exception_name(named[0]):
        _, _, tail = message.partition("\n")
        name, message = named[0], f"{named[1]}\n{tail}".strip()
    else:
        name = "AssertionError" if frames and message.startswith("assert ") else ""
    line = lines[start]
    for ahead in lines[at : at + 3]:
        found = PYTEST_PLACE.match(ahead.text)
        if found is not None and found[4]:
            frames = (*frames, Frame(found[1], int(found[2]), "", _code(lines, start)))
            name, at = name or found[4], ahead.number - line.number + start + 1
            break
    if not name:
        return None, at
    return ExceptionBlock(name, message, line.number, line.number, at, tuple(frames), line.rank), at


def _code(lines: Sequence[Line], at: int) -> str:
    """Return the code line above, which pytest marks and the prefix reader unquoted."""
    return lines[at - 1].text.strip() if at and lines[at - 1].text.startswith("  ") else ""
