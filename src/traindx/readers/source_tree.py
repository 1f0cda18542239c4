"""Opening training code alone: Python and configuration below some paths, read, never run."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from traindx.errors import UnreadableArtifact
from traindx.model.run import Artifact, Run, Source

MAX_BYTES = 1 << 20  # a longer file is generated
SKIPPED = frozenset(
    {"venv", "env", "site-packages", "node_modules", "__pycache__", "dist-packages", "build"}
)
CONFIGURATION = (".json", ".yaml", ".yml", ".toml")
MAX_DOCUMENT = 1 << 16  # bytes; a larger one is data
MAX_DOCUMENTS = 200
NO_FILE = "it is a pipe or a device, not a file"
TRAINS = re.compile(rb"torch|lightning|transformers|accelerate")


def open_sources(paths: Sequence[str]) -> Run:
    """Return a run that holds the Python files of the paths which may train with torch.

    Files that such a file imports belong to the program, whether they mention torch or not.
    """
    sources: list[Source] = []
    artifacts: list[Artifact] = []
    others: dict[str, list[tuple[Path, bytes]]] = {}
    seen: set[str] = set()
    for path in paths:
        for file in _python_files(Path(path)):
            real = os.path.realpath(file)
            if real not in seen:
                seen.add(real)
                _read(file, sources, artifacts, others)
    _add_imported(sources, artifacts, others)
    documents = tuple(d for path in paths for d in _documents(Path(path))) if sources else ()
    return Run(
        name="check", sources=tuple(sources), documents=documents, artifacts=tuple(artifacts)
    )


def _documents(path: Path) -> Iterator[Source]:
    """The configuration files below a folder: small ones, and not too many."""
    if not path.is_dir():
        return
    files = islice(_files(path, CONFIGURATION), MAX_DOCUMENTS)
    for file in files:
        try:
            data = _bytes_of(file, MAX_DOCUMENT)
        except OSError:
            continue
        if 0 < len(data) <= MAX_DOCUMENT:
            yield Source(file.as_posix(), data.decode("utf-8-sig", "replace"))


IMPORTED = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+|import[ \t]+)([\w., \t]*)", re.M
)


def _add_imported(
    sources: list[Source],
    artifacts: list[Artifact],
    others: dict[str, list[tuple[Path, bytes]]],
) -> None:
    """Add the files that others import, and what those import."""
    pending = list(sources)
    while pending and others:
        for match in IMPORTED.finditer(pending.pop().text):
            for name in re.findall(r"\w+", f"{match[1] or ''} {match[2]}"):
                for path, data in others.pop(name, ()):
                    _keep(path, data, sources, artifacts)
                    pending.append(sources[-1])


def _python_files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise UnreadableArtifact(str(path), "does not exist", "a Python file or a folder of them")
    if not path.is_dir():
        if not path.is_file():
            remedy = "a copy of what it gives, in a file"
            raise UnreadableArtifact(str(path), NO_FILE, remedy)
        yield path
        return
    yield from _files(path, (".py", ".pyw"))


def _files(path: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for folder, inner, files in os.walk(path):
        inner[:] = sorted(n for n in inner if not _is_skipped(folder, n))
        yield from (Path(folder, name) for name in sorted(files) if name.endswith(suffixes))


def _is_skipped(folder: str, name: str) -> bool:
    try:
        is_environment = Path(folder, name, "pyvenv.cfg").exists()
    except OSError:  # not ours to look into
        return True
    return name.startswith(".") or name in SKIPPED or is_environment


def _read(
    path: Path,
    sources: list[Source],
    artifacts: list[Artifact],
    others: dict[str, list[tuple[Path, bytes]]],
) -> None:
    try:
        data = _bytes_of(path, MAX_BYTES)
    except OSError as error:
        artifacts.append(Artifact(str(path), "", (f"cannot be read: {error.strerror}",)))
        return
    if len(data) > MAX_BYTES:
        artifacts.append(Artifact(str(path), "", (f"larger than {MAX_BYTES >> 20} MB",)))
    elif TRAINS.search(data):
        _keep(path, data, sources, artifacts)
    else:
        stem = path.parent.name if path.stem == "__init__" else path.stem
        others.setdefault(stem, []).append((path, data))


def _bytes_of(path: Path, most: int) -> bytes:
    """Return what a file holds, up to a byte more than the most; a pipe is never waited for."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, NO_FILE)
    with path.open("rb") as file:
        return file.read(most + 1)


def _keep(path: Path, data: bytes, sources: list[Source], artifacts: list[Artifact]) -> None:
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    sources.append(Source(str(path), text))
    artifacts.append(Artifact(str(path), "python"))
