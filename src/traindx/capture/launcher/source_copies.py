"""The user's files as they were when they ran: copied early, for they may be edited meanwhile."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

FOLDER = "sources"
INDEX = "index.json"
MOST_FILES = 200
MOST_BYTES = 1 << 20


class Sources:
    """Copies files into `sources/` of a recording, once each, with an index of where they were."""

    def __init__(self, recording: Path, cwd: Path) -> None:
        self._folder = recording / FOLDER
        self._recording = recording
        self._cwd = cwd
        self._copies: dict[str, str] = {}  # original -> copy
        self._seen: set[str] = set()

    def keep(self, files: Iterable[object]) -> None:
        """Copy what is new, small enough and still there."""
        before = len(self._copies)
        for file in files:
            if len(self._copies) >= MOST_FILES:
                break
            if isinstance(file, str) and file not in self._seen:
                self._seen.add(file)
                self._copy(Path(file))
        if len(self._copies) > before:
            self._write_index()

    def _copy(self, original: Path) -> None:
        try:
            if not original.is_absolute() or not original.is_file():
                return
            with original.open("rb") as opened:
                data = opened.read(MOST_BYTES + 1)
        except (OSError, ValueError):
            return
        if len(data) > MOST_BYTES or self._recording in original.parents:
            return
        copy = self._name(original)
        target = self._folder / copy
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        self._copies[str(original)] = copy

    def _name(self, original: Path) -> str:
        """Return the path inside the working folder, or else one name made of the whole path."""
        if self._cwd in original.parents and ".." not in original.parts:
            name = original.relative_to(self._cwd).as_posix()
        else:
            name = re.sub(r"[^A-Za-z0-9._-]+", "_", str(original)).strip("_")[-150:]
        taken = {INDEX, *self._copies.values()}
        stem, suffix = os.path.splitext(name)  # noqa: PTH122 - the name may hold folders
        number = 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}{suffix}"
        return name

    def _write_index(self) -> None:
        index = {copy: original for original, copy in self._copies.items()}
        draft = self._folder / f".{INDEX}"
        draft.write_text(json.dumps(index, indent=1), encoding="utf-8")
        draft.replace(self._folder / INDEX)
