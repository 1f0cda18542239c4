"""The folders that an assistant was granted, and a guard that keeps every reading inside them.

A path is checked when it is named, and every file again when it is opened: a link in a folder, an
index that names other files or a context package must not lead elsewhere either. The second check
is an audit hook of the interpreter, so no reader has to know of it.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from traindx.errors import UnreadableArtifact, UsageError

SPOOL_PREFIX = "traindx-"  # of the temporary folders that opening a run makes for itself
MAX_SHOWN = 5
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_OPENING = frozenset({"open", "os.scandir", "os.listdir", "sqlite3.connect"})


@dataclass(frozen=True, slots=True)
class Roots:
    """Granted folders, as they really are: without links."""

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, folders: Iterable[str | os.PathLike[str]]) -> Roots:
        """Return the roots that these folders are; what is no folder grants nothing."""
        real = (Path(os.path.realpath(folder)) for folder in folders)
        return cls(tuple(dict.fromkeys(f for f in real if f.is_dir())))

    @classmethod
    def of_uris(cls, uris: Iterable[str]) -> Roots:
        """Return the roots that a client lists as `file://` addresses."""
        paths = [url2pathname(urlsplit(u).path) for u in uris if urlsplit(u).scheme == "file"]
        return cls.of(p for p in paths if "\0" not in p)

    @property
    def home(self) -> Path:
        """The folder that no path means: the working folder if it was granted, else the first."""
        here = Path.cwd()
        if not self.folders or self.covers(here):
            return here
        return self.folders[0]

    def covers(self, path: str | os.PathLike[str]) -> bool:
        """Tell whether a path, with every link followed, lies in a granted folder."""
        real = Path(os.path.realpath(path))
        return any(real.is_relative_to(folder) for folder in self.folders)

    def locate(self, path: str) -> Path:
        """Return where a named file or folder is; refuse what was not granted."""
        found = self.place(path)
        try:
            mode = found.stat().st_mode
        except OSError as error:
            why = "it does not exist" if error.errno == errno.ENOENT else f"{error.strerror}"
            raise UnreadableArtifact(path, why, f"a path below {self._listed()}") from None
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise UsageError(f"{path}: it is a pipe or a device, not a file. Try: a file or folder")
        return found

    def place(self, path: str) -> Path:
        """Return the place that a path names, there or not, if it lies in a granted folder."""
        if not path.strip() or "\0" in path:
            raise UsageError("an empty path, or one with a NUL in it, names no file")
        named = Path(path)
        if ".." in named.parts:
            raise UsageError(f"{path}: a path with '..' is refused. Try: the path itself")
        if not self.folders:
            raise UsageError(f"{path}: no folder was granted. Try: traindx mcp --root DIR")
        candidates = [named] if named.is_absolute() else [f / named for f in self._bases()]
        inside = [c for c in candidates if self.covers(c)]
        if not inside:
            raise UsageError(f"{path}: {OUTSIDE}. Try: a path below {self._listed()}")
        return next((c for c in inside if os.path.lexists(c)), inside[0])

    def _bases(self) -> list[Path]:
        return [self.home, *(f for f in self.folders if f != self.home)]

    def _listed(self) -> str:
        shown = ", ".join(str(folder) for folder in self.folders[:MAX_SHOWN])
        more = len(self.folders) - MAX_SHOWN
        return f"{shown} and {more} more" if more > 0 else shown


OUTSIDE = "it leads outside the folders that were granted"
_CONFINED: ContextVar[Roots | None] = ContextVar("confined", default=None)


@contextmanager
def confined(roots: Roots) -> Iterator[None]:
    """Let the code inside open nothing but files below the roots, and those only for reading.

    What Python itself needs stays open: its libraries, and the temporary folders of a reading.
    """
    _install()
    _libraries()
    _spool()  # not first inside the guard: finding them opens files and takes locks
    token = _CONFINED.set(roots)
    try:
        yield
    finally:
        _CONFINED.reset(token)


@cache
def _install() -> None:
    sys.addaudithook(_guard)


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _OPENING:
        return
    roots = _CONFINED.get()
    if roots is None:
        return
    path = _path_in(event, arguments[0])
    if path is None or path == os.devnull:
        return
    if _is_own(path):
        return
    if event == "open" and _is_writing(arguments):
        raise PermissionError(errno.EACCES, "it is open for reading only", path)
    if not roots.covers(path):
        raise PermissionError(errno.EACCES, OUTSIDE, path)
    if _is_special(path):  # opening it might wait for ever
        raise PermissionError(errno.EACCES, "it is a pipe or a device", path)


def _path_in(event: str, given: Any) -> str | None:
    """Return the path that is about to be opened; an open file descriptor has none."""
    if given is None:
        return os.curdir
    if not isinstance(given, (str, bytes, os.PathLike)):
        return None
    path = os.fsdecode(given)
    if event == "sqlite3.connect" and path.startswith("file:"):
        return unquote(path.removeprefix("file:").split("?", 1)[0])
    return path


def _is_writing(arguments: tuple[Any, ...]) -> bool:
    mode, flags = arguments[1], arguments[2]
    by_mode = isinstance(mode, str) and bool(set(mode) & set("wax+"))
    return by_mode or (isinstance(flags, int) and bool(flags & _WRITING))


def _is_special(path: str) -> bool:
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _is_own(path: str) -> bool:
    real = Path(os.path.realpath(path))
    if any(real.is_relative_to(folder) for folder in _libraries()):
        return True
    spool = _spool()
    below = real.relative_to(spool).parts if real.is_relative_to(spool) else ()
    return bool(below) and below[0].startswith(SPOOL_PREFIX)


@cache
def _spool() -> Path:
    return Path(os.path.realpath(tempfile.gettempdir()))


@cache
def _libraries() -> tuple[Path, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_paths()[name] for name in names}
    folders.add(str(Path(__file__).parents[1]))
    return tuple(Path(os.path.realpath(folder)) for folder in sorted(folders))
