"""Opening training code alone: every Python file below some paths, read once, never run."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from traindx.errors import UnreadableArtifact
from traindx.model import Artifact, Run, Source

MAX_BYTES = 1 << 20  # a longer file is generated
SKIPPED = frozenset(
    {"venv", "env", "site-packages", "node_modules", "__pycache__", "dist-packages", "build"}
)
TRAINS = re.compile(rb"torch|lightning|transformers|accelerate")


def open_sources(paths: Sequence[str]) -> Run:
    """Return a run that holds the Python files of the paths which may train with torch."""
    sources: list[Source] = []
    artifacts: list[Artifact] = []
    seen: set[str] = set()
    for path in paths:
        for file in _python_files(Path(path)):
            real = os.path.realpath(file)
            if real not in seen:
                seen.add(real)
                _read(file, sources, artifacts)
    return Run(name="check", sources=tuple(sources), artifacts=tuple(artifacts))


def _python_files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise UnreadableArtifact(str(path), "does not exist", "a Python file or a folder of them")
    if not path.is_dir():
        yield path
        return
    for folder, inner, files in os.walk(path):
        inner[:] = sorted(n for n in inner if not _is_skipped(folder, n))
        yield from (Path(folder, name) for name in sorted(files) if name.endswith((".py", ".pyw")))


def _is_skipped(folder: str, name: str) -> bool:
    is_environment = Path(folder, name, "pyvenv.cfg").exists()
    return name.startswith(".") or name in SKIPPED or is_environment


def _read(path: Path, sources: list[Source], artifacts: list[Artifact]) -> None:
    try:
        data = path.read_bytes()
    except OSError as error:
        artifacts.append(Artifact(str(path), "", (f"cannot be read: {error.strerror}",)))
        return
    if len(data) > MAX_BYTES:
        artifacts.append(Artifact(str(path), "", (f"larger than {MAX_BYTES >> 20} MB",)))
    elif TRAINS.search(data):
        text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
        sources.append(Source(str(path), text))
        artifacts.append(Artifact(str(path), "python"))
