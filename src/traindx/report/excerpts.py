"""The lines around a place in a text artifact, read late, bounded, and from artifacts alone.

A log can name any file. Only what the run was read from is quoted, so that a report that is passed
on holds nothing its author did not hand to traindx.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from traindx.model.run import Run

Lines = list[tuple[int, str]]
Excerpt = Callable[[str, int], Lines | None]

AROUND = 5
LONGEST_LINE = 400
LARGEST_BYTES = 64 << 20  # a line further into a log than this is not worth the wait


def excerpts_of(run: Run) -> Excerpt:
    """Return the function that quotes from the artifacts of a run, and from nothing else."""
    texts = {source.path: source.text for source in run.sources}
    known = {artifact.path for artifact in run.artifacts}

    def excerpt(artifact: str, line: int) -> Lines | None:
        if artifact in texts:
            return around(texts[artifact].split("\n"), line)
        return read_excerpt(Path(artifact), line) if artifact in known else None

    return excerpt


def around(lines: list[str], line: int) -> Lines | None:
    """Return the lines around one, with their numbers; None where there is no such line."""
    if not 1 <= line <= len(lines):
        return None
    first = max(line - AROUND, 1)
    last = min(line + AROUND, len(lines))
    return [(n, lines[n - 1].rstrip("\r")[:LONGEST_LINE]) for n in range(first, last + 1)]


def read_excerpt(path: Path, line: int) -> Lines | None:
    """Return the lines around one of a text file, or None where that cannot be had safely."""
    if line < 1:
        return None
    try:
        with _open_plainly(path) as file:
            return _quote(file, line)
    except (OSError, ValueError):
        return None


def _open_plainly(path: Path) -> BinaryIO:
    """Open a regular file; a link may lead below its own folder, and a pipe is never waited for."""
    target = path.resolve(strict=True)
    if path.is_symlink() and not target.is_relative_to(path.parent.resolve()):
        raise OSError(f"{path} leads out of its folder")
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    file = os.fdopen(os.open(target, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{path} is no regular file")
    return file


def _quote(file: BinaryIO, line: int) -> Lines | None:
    first = max(line - AROUND, 1)
    quoted = [
        (first + i, raw.decode("utf-8", "replace").rstrip("\r\n")[:LONGEST_LINE])
        for i, raw in enumerate(islice(_bounded(file), first - 1, line + AROUND))
    ]
    has_line = bool(quoted) and quoted[-1][0] >= line
    is_text = not any("\0" in text for _, text in quoted)
    return quoted if has_line and is_text else None


def _bounded(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines until too much was read; of a line that is too long, its start."""
    read = 0
    chunk = LONGEST_LINE * 4
    while read < LARGEST_BYTES and (raw := file.readline(chunk)):
        read += len(raw)
        yield raw
        while raw and not raw.endswith(b"\n") and len(raw) == chunk and read < LARGEST_BYTES:
            raw = file.readline(chunk)
            read += len(raw)
