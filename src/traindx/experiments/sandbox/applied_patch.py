"""Unified diffs applied to a copy of the project: exactly, or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from traindx.errors import PatchFailed

MOST_BYTES = 16 << 20
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_UNENDED = "\\"

Find = Callable[[PurePosixPath], Sequence[Path]]


@dataclass(slots=True)
class Hunk:
    """Lines that stand in a file, and the lines that replace them; each without its line end."""

    start: int  # counted from 0
    header: str
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    last_kind: str = " "
    is_unended: bool = False  # afterwards the file ends without a line end


@dataclass(slots=True)
class FilePatch:
    """The hunks of one file."""

    path: PurePosixPath
    hunks: list[Hunk] = field(default_factory=list)


def apply(patch: str, find: Find, write: Callable[[Path, bytes], None]) -> tuple[Path, ...]:
    """Apply a diff and return the files it changed.

    `find` gives the files that a path may mean, best first; the first that the hunks fit is taken.
    """
    changed = []
    for part in parse(patch):
        path, data = _patched(part, find(part.path))
        write(path, data)
        changed.append(path)
    return tuple(changed)


def parse(patch: str) -> list[FilePatch]:
    """Return the parts of a unified diff; paths that lead elsewhere are refused."""
    parts: list[FilePatch] = []
    lines = iter(patch.split("\n"))
    for line in lines:
        if line.startswith("--- "):
            after = next(lines, "")
            if not after.startswith("+++ "):
                raise PatchFailed(f"the patch is damaged: no +++ line after {line!r}")
            parts.append(FilePatch(_path(line[4:], after[4:])))
        elif line.startswith("@@ "):
            if not parts:
                raise PatchFailed("the patch is damaged: a hunk comes before any file")
            parts[-1].hunks.append(_hunk(line, lines))
        elif line.startswith(_UNENDED) and parts and parts[-1].hunks:
            _mark_unended(parts[-1].hunks[-1])
    if not any(part.hunks for part in parts):
        raise PatchFailed("the patch holds no change")
    return parts


def _path(before: str, after: str) -> PurePosixPath:
    name = after.split("\t", maxsplit=1)[0].strip()
    if name == "/dev/null" or before.split("\t", maxsplit=1)[0].strip() == "/dev/null":
        raise PatchFailed("the patch adds or removes a file; only changes to files can be tested")
    path = PurePosixPath(name.removeprefix("b/"))
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise PatchFailed(f"the patch leads out of the project: {name}")
    return path


def _hunk(header: str, lines: Iterator[str]) -> Hunk:
    match = _HUNK.match(header)
    if match is None:
        raise PatchFailed(f"the patch is damaged: {header!r}")
    old, new = (int(match[i] or 1) if match[i] != "0" else 0 for i in (2, 4))
    hunk = Hunk(int(match[1]) - (1 if old else 0), header)
    while len(hunk.old) < old or len(hunk.new) < new:
        line = next(lines, None)
        kind = "" if line is None else line[:1] or " "  # editors strip the blank of an empty line
        if line is None or kind not in (" ", "-", "+", _UNENDED):
            raise PatchFailed(f"the patch is damaged: {header} ends too early")
        if kind == _UNENDED:
            _mark_unended(hunk)
            continue
        if kind in " -":
            hunk.old.append(line[1:])
        if kind in " +":
            hunk.new.append(line[1:])
        hunk.last_kind = kind
    return hunk


def _mark_unended(hunk: Hunk) -> None:
    """After a removed line the mark speaks of the old file only."""
    hunk.is_unended = hunk.last_kind != "-"


def _patched(part: FilePatch, candidates: Sequence[Path]) -> tuple[Path, bytes]:
    if not candidates:
        raise PatchFailed(f"{part.path}: the file that the patch changes is not in the project")
    failure: PatchFailed | None = None
    for path in candidates:
        try:
            return path, _apply(part, path.read_bytes())
        except OSError as error:
            failure = failure or PatchFailed(f"{part.path}: {error.strerror or error}")
        except PatchFailed as error:
            failure = failure or error
    assert failure is not None
    raise failure


def _apply(part: FilePatch, data: bytes) -> bytes:
    if len(data) > MOST_BYTES:
        raise PatchFailed(f"{part.path}: too large to be patched")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PatchFailed(f"{part.path}: not UTF-8, so it cannot be patched") from error
    ending = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").split("\n")
    is_ended = lines[-1] == ""
    if is_ended:
        lines.pop()
    shift = 0
    for number, hunk in enumerate(part.hunks, 1):
        at = _place(lines, hunk, hunk.start + shift)
        if at is None:
            what = f"hunk {number} of {len(part.hunks)} ({hunk.header})"
            raise PatchFailed(f"{part.path}: {what} does not fit; the file has changed since")
        is_last = at + len(hunk.old) == len(lines)
        lines[at : at + len(hunk.old)] = hunk.new
        shift = at - hunk.start + len(hunk.new) - len(hunk.old)
        if is_last:
            is_ended = not hunk.is_unended
    return (ending.join(lines) + (ending if is_ended and lines else "")).encode()


def _place(lines: list[str], hunk: Hunk, expected: int) -> int | None:
    """Return where the old lines stand: as told, or else in the only place that has them."""
    size = len(hunk.old)
    if expected >= 0 and lines[expected : expected + size] == hunk.old:
        return expected
    if not size:
        return None
    found = [i for i in range(len(lines) - size + 1) if lines[i : i + size] == hunk.old]
    return found[0] if len(found) == 1 else None
