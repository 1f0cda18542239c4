"""The user's files as they were when they ran, under the names they had."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

from traindx.model.run import Source
from traindx.readers.formats.recording.recording_files import SOURCES
from traindx.readers.text import decode, is_text

MAX_FILES = 400
MAX_BYTES = 1 << 20  # a longer file is generated
MAX_INDEX = 4 << 20


def copied_sources(folder: Path) -> tuple[tuple[Source, ...], list[str]]:
    """Return the copies in a recording, and what is wrong with them."""
    index = _index(folder / SOURCES / "index.json")
    sources = []
    for name, original in islice(index.items(), MAX_FILES):
        text = _text(folder, name)
        if text is not None:
            sources.append(Source(original, text))
    missing = min(len(index), MAX_FILES) - len(sources)
    warnings = [f"{missing} of {len(index)} copies of source files cannot be read"]
    return tuple(dict.fromkeys(sources)), warnings if missing else []


def _index(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(MAX_INDEX))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    return {k: v for k, v in data.items() if isinstance(v, str) and v}


def _text(folder: Path, name: str) -> str | None:
    """Read a copy; an index that was tampered with leads nowhere else."""
    copies = folder / SOURCES
    try:
        path = (copies / name).resolve()
        if not path.is_file() or not path.is_relative_to(copies.resolve()):
            return None
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        return None
    is_code = len(data) <= MAX_BYTES and is_text(data)
    return decode(data).replace("\r\n", "\n") if is_code else None
