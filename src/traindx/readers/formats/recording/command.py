"""The command of a recording, as its parent saw it: how it was started and how it ended."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from traindx.model.recording import Ending
from traindx.model.run import Event, Failure
from traindx.readers.formats.recording.recording_files import STACK_FILE
from traindx.readers.formats.recording.typed_json import Misfit, Odd, shape_of
from traindx.tracebacks import parse_failures

MAX_BYTES = 4 << 20
MAX_STACK = 64 << 10
_STOPS = frozenset({"SIGKILL", "SIGTERM", "SIGHUP", "SIGXCPU"})


@dataclass(slots=True)
class Command:
    """What the parent wrote, and what is wrong with it."""

    path: str
    ending: Ending = field(default_factory=Ending)
    memory_kills: int = 0  # that the kernel counted on the machine meanwhile
    warnings: list[str] = field(default_factory=list)

    def events(self) -> Iterator[Event]:
        """Say how the command ended, where it did not end well."""
        number, code = self.ending.signal, self.ending.exit_code
        if number is None and code is not None and 128 < code < 160:
            number = code - 128  # as a shell tells it
        if number:
            name = _signal_name(number)
            text = f"the command was ended by {name} (signal {number})"
            if name == "SIGKILL" and self.memory_kills:
                text += "; meanwhile the out-of-memory killer struck on this machine"
            yield Event("killed" if name in _STOPS else "exit", text, self.path, "signal")
        elif code:
            yield Event("exit", f"the command ended with exit code {code}", self.path, "exit_code")

    def crashes(self) -> list[Failure]:
        """Return the crash below Python that the interpreter wrote down before it died."""
        if "Fatal Python error" not in self.ending.last_stack:
            return []
        return list(parse_failures(self.ending.last_stack, self.path))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "a signal"


def read_command(path: Path) -> Command:
    """Read the file of a command as far as it makes sense."""
    odd: Odd = Odd()
    try:
        with path.open("rb") as file:
            about = json.loads(file.read(MAX_BYTES))
        ending = shape_of(Ending)(about, odd)
    except (ValueError, RecursionError, Misfit):
        why = "it is damaged: how the command ended is not known"
        return Command(str(path), warnings=[why])
    if not ending.last_stack:
        ending = replace(ending, last_stack=_last_stack(path.parent))
    said = f"{odd.total()} values are of another kind than the format has"
    return Command(str(path), ending, _count(about.get("memory_kills")), [said] if odd else [])


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _last_stack(folder: Path) -> str:
    """Return what the interpreter wrote last of where a process stood."""
    try:
        files = [f for f in folder.iterdir() if STACK_FILE.fullmatch(f.name) and f.is_file()]
        written = [f for f in files if f.stat().st_size]
        if not written:
            return ""
        with max(written, key=lambda f: f.stat().st_mtime).open("rb") as file:
            return file.read(MAX_STACK).decode("utf-8", "replace")
    except OSError:
        return ""
