"""A second view of the file system: what is written lands here, all else shines through.

Below `base` there are real folders along the paths that were copied or written to. In them,
symbolic links stand for what was left as it is. Before something is written, the links above it are
unfolded into folders of links, one level each, so that no write ever goes through one.
"""

from __future__ import annotations

import os
from _thread import get_ident
from math import inf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_ENTRIES = 50_000  # of a folder that is unfolded
MOST_BYTES = 4 << 30  # of a file that is changed in part
CHUNK_BYTES = 4 << 20
PARTIAL = ".traindx-partial"  # marks a folder whose other entries are only in the original
SIGN = "traindx verify: "


class Mirror:
    """Where a path is read and where it is written instead, given as absolute paths."""

    def __init__(self, base: str, allowed: Iterable[str], born_s: float = inf) -> None:
        self.base = os.path.realpath(base)
        self.born_s = born_s
        self.allowed = tuple(dict.fromkeys(os.path.realpath(a) for a in allowed if a))

    def is_free(self, real: str) -> bool:
        """Tell whether a path without links may be written as it is."""
        return is_below(real, self.base) or any(is_below(real, a) for a in self.allowed)

    def view(self, path: str) -> str:
        """Return where a path is to be read."""
        if is_below(path, self.base) or any(is_below(path, a) for a in self.allowed):
            return path
        top = path.split(os.sep, 2)[1]
        if not top or not os.path.lexists(f"{self.base}/{top}"):
            return path
        mapped = self.base + path
        return path if not os.path.lexists(mapped) and self._shines_through(path) else mapped

    def _shines_through(self, path: str) -> bool:
        """Tell whether what is not here is still to be read where it was.

        That holds for what lies in a folder that could not be unfolded as a whole, and for what
        somebody made since who is not guarded: another program, or a library below Python.
        """
        above = os.path.dirname(self.base + path)
        while not os.path.lexists(above):
            above = os.path.dirname(above)
        if self._is_partial(above):
            return True
        try:
            return os.lstat(path).st_ctime > self.born_s
        except OSError:
            return False

    def _is_partial(self, folder: str) -> bool:
        return folder == self.base or os.path.lexists(os.path.join(folder, PARTIAL))

    def writable(self, path: str, *, keeps: bool = False, makes: bool = False) -> str:
        """Return where a path is to be written, behind no link that leads out of here.

        With `keeps`, what is there now is copied first; with `makes`, a link there gives way.
        """
        if not is_below(path, self.base) and any(is_below(path, a) for a in self.allowed):
            return path
        inner = path[len(self.base) :] if is_below(path, self.base) else path
        folder, name = os.path.split(inner)
        home = self.real_folder(folder)
        place = os.path.join(home, name)
        is_left_out = os.path.isdir(home) and self._is_partial(home) and is_below(home, self.base)
        if is_left_out and not os.path.lexists(place) and os.path.lexists(inner):
            os.symlink(inner, place)  # as it would be had the folder been unfolded
        if not (keeps or makes) or not os.path.islink(place):
            return place
        target = os.path.realpath(place)
        if self.is_free(target):
            return place
        if os.path.isdir(target):
            self._unfold(place, target)
        elif keeps and os.path.exists(target):
            _copy_over(target, place)
        else:
            os.unlink(place)
        return place

    def real_folder(self, inner: str) -> str:
        """Return the place of a folder, after every link above it was unfolded."""
        here = self.base
        parts = [p for p in inner.split(os.sep) if p]
        for i, part in enumerate(parts):
            here = os.path.join(here, part)
            if os.path.islink(here):
                target = os.path.realpath(here)
                if self.is_free(target):
                    return os.path.join(target, *parts[i + 1 :])
                if os.path.isdir(target):
                    self._unfold(here, target)
            elif not os.path.lexists(here) and self._is_partial(os.path.dirname(here)):
                original = os.sep + os.path.join(*parts[: i + 1])
                if os.path.isdir(original):
                    self._unfold(here, os.path.realpath(original))
        return here

    def copy(self, source: str, place: str) -> None:
        """Put a copy of a file in a place, over a link that is there."""
        _copy_over(source, place)

    def _unfold(self, place: str, target: str) -> None:
        """Put a folder of links where a link to a folder was, or where nothing was."""
        draft = f"{place}.{os.getpid()}.{get_ident()}.unfolding"
        os.mkdir(draft)
        for name in _names(target):
            os.symlink(os.path.join(target, name), os.path.join(draft, name))
        try:
            if os.path.islink(place):
                os.unlink(place)
            os.rename(draft, place)
        except OSError:
            if os.path.islink(place) or not os.path.isdir(place):
                raise
            for name in os.listdir(draft):  # another process was quicker
                os.unlink(os.path.join(draft, name))
            os.rmdir(draft)


def is_below(path: str, folder: str) -> bool:
    """Tell whether a path is a folder or lies in it."""
    return path == folder or path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def _names(folder: str) -> list[str]:
    """Return what is in a folder; of one that is not to be listed, a sign that says so."""
    try:
        names = os.listdir(folder)
    except PermissionError:
        return [PARTIAL]
    return names if len(names) <= MOST_ENTRIES else [PARTIAL]


def _copy_over(source: str, place: str) -> None:
    """Replace a link by a copy of what it leads to."""
    size = os.stat(source).st_size
    if size > MOST_BYTES:
        raise PermissionError(f"{SIGN}{source} is too large to be changed in a rerun")
    draft = f"{place}.{os.getpid()}.{get_ident()}.copying"
    reading = os.open(source, os.O_RDONLY)
    try:
        writing = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            while data := os.read(reading, CHUNK_BYTES):
                while data:
                    data = data[os.write(writing, data) :]
        finally:
            os.close(writing)
    finally:
        os.close(reading)
    os.replace(draft, place)
