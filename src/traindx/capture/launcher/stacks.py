"""Where a process stood that crashed or cannot speak for itself, as its interpreter wrote it."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ASK = signal.SIGRTMIN + 7 if sys.platform == "linux" else 0  # the recorder listens for it
READ_BYTES = 256 << 10
ANSWER_S = 0.3

_FATAL = re.compile(r"^Fatal Python error: (.*)$", re.MULTILINE)
_CURRENT = re.compile(r"^(?:Current thread|Thread) .*most recent call first.*:$", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", line (\d+|\?\?\?) in (.*)$')
_LIBRARY = re.compile(r"site-packages|dist-packages|[/\\]lib[/\\]python3|^<frozen")


@dataclass(frozen=True, slots=True)
class InterpreterCrash:
    """A crash of an interpreter, and the line of Python that it happened in."""

    pid: int
    error: str
    file: str = ""
    line: str = ""
    function: str = ""

    @property
    def place(self) -> str:
        """The place in words, or nothing where it is not known."""
        return f"{self.file} line {self.line}, in {self.function}" if self.file else ""


def crashes(folder: Path) -> list[InterpreterCrash]:
    """Return the crashes that interpreters wrote down in a recording."""
    found = []
    for path in sorted(folder.glob("*.stack")):
        with suppress(OSError):
            crash = read_crash(path)
            if crash is not None:
                found.append(crash)
    return found


def read_crash(path: Path) -> InterpreterCrash | None:
    """Return the last crash in a file of stacks: the innermost line of the user, or any."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - READ_BYTES))
        text = file.read().decode("utf-8", "replace")
    told = list(_FATAL.finditer(text))
    if not told or not path.stem.isdigit():
        return None
    rest = text[told[-1].end() :]
    thread = next((m for m in _CURRENT.finditer(rest) if m[0].startswith("Current")), None)
    frames = []
    for line in rest[thread.end() :].lstrip("\n").splitlines() if thread else ():
        match = _FRAME.match(line)
        if match is None:
            break
        frames.append(match)
    best = next((f for f in frames if not _LIBRARY.search(f[1])), frames[0] if frames else None)
    place = (best[1], best[2], best[3]) if best is not None else ("", "", "")
    return InterpreterCrash(int(path.stem), told[-1][1].strip(), *place)


def ask(folder: Path, pids: Iterable[int]) -> bool:
    """Have processes write down where they stand; tell whether one of them could be asked."""
    asked = []
    for pid in pids:
        with suppress(OSError):
            if _listens(pid):
                asked.append((folder / f"{pid}.stack", _size(folder / f"{pid}.stack")))
                os.kill(pid, ASK)
    deadline = time.monotonic() + ANSWER_S
    while asked and time.monotonic() < deadline:
        if all(_size(path) > before for path, before in asked):
            break
        time.sleep(0.01)
    return bool(asked)


def _listens(pid: int) -> bool:
    """Tell whether a process handles the question; else it would end the process."""
    if not ASK:
        return False
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", status, re.MULTILINE)
    return caught is not None and bool(int(caught[1], 16) >> (ASK - 1) & 1)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
