"""Following the records of the training processes while they are written."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

RECORDS = re.compile(r"rank(\d+)-(\d+)\.jsonl")
MOST_AT_ONCE = 8 << 20
LONGEST_LINE = 4 << 20
_OF_INTEREST = re.compile(rb'\{"k": ?"(sources|stall|nonfinite|caught|counts)"')


@dataclass(slots=True)
class FollowedProcess:
    """One process: how far its records were read, and whether it stands still by its own word."""

    path: Path
    rank: int
    pid: int
    offset: int = 0
    torn: bytes = b""
    grew_s: float = 0.0
    stall: Mapping[str, object] | None = None
    sources: list[object] = field(default_factory=list)
    signs: set[str] = field(default_factory=set)  # that something is badly wrong


class Following:
    """Reads what was appended since the last look."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.processes: dict[str, FollowedProcess] = {}
        self._signs_taken: set[str] = set()

    def look(self) -> None:
        """Read what is new, at most some megabytes of each file."""
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - names are all that is needed
        except OSError:
            return
        for name in names:
            match = RECORDS.fullmatch(name)
            if match is not None and name not in self.processes:
                path = self._folder / name
                self.processes[name] = FollowedProcess(path, int(match[1]), int(match[2]))
        for followed in self.processes.values():
            try:
                self._read(followed)
            except OSError:
                continue

    def take_sources(self) -> list[object]:
        """Return the files that were named since this was last asked."""
        files: list[object] = []
        for followed in self.processes.values():
            files += followed.sources
            followed.sources = []
        return files

    def take_signs(self) -> bool:
        """Tell whether there is a sign of a kind that was not there when this was last asked."""
        now = {sign for followed in self.processes.values() for sign in followed.signs}
        has_new = bool(now - self._signs_taken)
        self._signs_taken |= now
        return has_new

    @property
    def stalled(self) -> list[FollowedProcess]:
        """The processes whose last word on it is that they stand still."""
        return [f for f in self.processes.values() if f.stall is not None]

    def _read(self, followed: FollowedProcess) -> None:
        with followed.path.open("rb") as file:
            file.seek(followed.offset)
            data = file.read(MOST_AT_ONCE)
        if not data:
            return
        followed.offset += len(data)
        followed.grew_s = time.monotonic()
        *lines, torn = (followed.torn + data).split(b"\n")
        followed.torn = torn if len(torn) <= LONGEST_LINE else b""
        for line in lines:
            if _OF_INTEREST.match(line):
                _note(followed, line)


def _note(followed: FollowedProcess, line: bytes) -> None:
    try:
        record = json.loads(line)
    except ValueError:
        return
    kind = record["k"]
    if kind == "counts":
        if record.get("has_moved") is False and record.get("steps"):
            followed.signs.add("no weight has moved")
        return
    if kind in ("stall", "nonfinite", "caught"):
        followed.signs.add(kind)
    if kind == "stall":
        followed.stall = None if record.get("is_over") else record
    elif isinstance(record.get("files"), list):
        followed.sources += record["files"]
