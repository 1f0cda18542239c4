"""Keeps a rerun away from the user's files: what it writes elsewhere lands in the copy.

Two lines of defence, in every Python process below a rerun, from its start: the functions that
open, make, move and remove files are led to a mirror of the file system, where later reads find
what was written; and an audit hook refuses whatever else Python would write outside. Without the
guard the program must not run, so a guard that cannot be set up ends the process.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
from _thread import _local

from . import foreign_writers, programs
from .mirror import SIGN, Mirror, is_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..change_report import ChangeReport

FAILED = 70  # the exit code for a fault in software
MOST_TOLD = 500
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# name, how each path is meant: (position, keyword, mode, keyword of the folder's descriptor)
READ, PLACE, CHANGE, EMPTY = "read", "place", "change", "empty"
_READING = ("stat", "lstat", "listdir", "scandir", "access", "readlink", "chdir", "statvfs",
            "getxattr", "listxattr")  # fmt: skip
_PLACING = ("remove", "unlink", "mkdir", "mkfifo", "mknod")
_CHANGING = ("truncate", "chmod", "lchmod", "chown", "lchown", "utime", "setxattr",
             "removexattr")  # fmt: skip
_FUNCTIONS: dict[str, tuple[tuple[int, str, str, str], ...]] = {
    **dict.fromkeys(_READING, ((0, "path", READ, "dir_fd"),)),
    **dict.fromkeys(_PLACING, ((0, "path", PLACE, "dir_fd"),)),
    **dict.fromkeys(_CHANGING, ((0, "path", CHANGE, "dir_fd"),)),
    "rmdir": ((0, "path", EMPTY, "dir_fd"),),
    "rename": ((0, "src", PLACE, "src_dir_fd"), (1, "dst", PLACE, "dst_dir_fd")),
    "replace": ((0, "src", PLACE, "src_dir_fd"), (1, "dst", PLACE, "dst_dir_fd")),
    "symlink": ((1, "dst", PLACE, "dir_fd"),),
}
# events whose first argument, or the one at the index, is written; True: a link itself is meant
_AUDITED: dict[str, tuple[tuple[int, bool], ...]] = {
    "os.remove": ((0, True),), "os.rmdir": ((0, True),), "os.mkdir": ((0, True),),
    "os.rename": ((0, True), (1, True)), "os.symlink": ((1, True),), "os.link": ((1, True),),
    "os.truncate": ((0, False),), "os.chmod": ((0, False),), "os.chown": ((0, False),),
    "os.utime": ((0, False),), "os.setxattr": ((0, False),), "os.removexattr": ((0, False),),
    "sqlite3.connect": ((0, False),),
}  # fmt: skip


class Ward:
    """What is guarded, and what has happened."""

    def __init__(self, values: Mapping[str, str], report: ChangeReport) -> None:
        allowed = values["allowed"].split(os.pathsep)
        self.mirror = Mirror(values["mirror"], allowed, float(values["born_s"]))
        self.roots = [r for r in values.get("roots", "").split(os.pathsep) if r]
        self._log = values["log"]
        self._report = report
        self._told: set[str] = set()
        self._now = _local()

    @property
    def is_at_work(self) -> bool:
        """Whether this thread is in our own code, whose writes are right."""
        return getattr(self._now, "is_at_work", False)

    def work(self, act: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Act without being guarded."""
        if self.is_at_work:
            return act(*args, **kwargs)
        self._now.is_at_work = True
        try:
            return act(*args, **kwargs)
        finally:
            self._now.is_at_work = False

    def led(self, path: Any, mode: str) -> Any:
        """Return the path to use instead, of the same type; the same one where nothing changes."""
        try:
            raw = os.fspath(path)
        except TypeError:  # a descriptor, or a mistake that the caller is to be told of
            return path
        text = os.fsdecode(raw)
        if not text or "\0" in text:
            return path
        target = self.work(self._lead, text, mode)
        if target is None:
            return path
        return os.fsencode(target) if isinstance(raw, bytes) else target

    def _lead(self, text: str, mode: str) -> str | None:
        try:
            full = os.path.abspath(text)
        except OSError:  # the working folder is gone
            return None
        mirror = self.mirror
        if mode == READ:
            target = mirror.view(full)
            return None if target == full else target
        real = _real(full, mode == PLACE)
        target = mirror.writable(full, keeps=mode == CHANGE, makes=mode == EMPTY)
        if real is not None and not mirror.is_free(real):
            self.tell("redirected", real)
        return None if target == full else target

    def imported(self, path: Any) -> Any:
        """Return where to import from instead: the copy of the project, not its original."""
        is_own = isinstance(path, str) and any(is_below(path, root) for root in self.roots)
        if not is_own or any(is_below(path, p) for p in (sys.prefix, sys.base_prefix)):
            return path
        return self.mirror.base + path

    def tell(self, kind: str, text: str) -> None:
        """Keep a line for the parent, once, even if this process is killed."""
        line = f"{kind}\t{text!s}".replace("\n", " ")
        if line not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(line)
            self._report.count()
            self.work(self._append, line)

    def _append(self, line: str) -> None:
        try:
            file = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(file, os.fsencode(line + "\n"))
            finally:
                os.close(file)
        except OSError:
            return

    def refuse(self, what: str, path: str) -> None:
        """Tell, and raise what the program would get for a file that it may not touch."""
        self.tell("refused", f"{what} {path}")
        raise PermissionError(13, f"{SIGN}{what} outside of the copy is refused", path)

    def check(self, what: str, path: Any, *, is_link_itself: bool) -> None:
        """Refuse a write outside; the last line of defence."""
        if self.is_at_work or isinstance(path, int) or path is None:
            return
        real = self.work(_real, path, is_link_itself)
        if real is not None and not self.mirror.is_free(real):
            self.refuse(what, real)


def _real(path: Any, is_link_itself: bool) -> str | None:
    try:
        text = os.fsdecode(path)
        if text.startswith("file:") or text in ("", ":memory:"):
            text = text[5:].partition("?")[0]
            if not text:
                return None
        full = os.path.abspath(text)
        if is_link_itself:
            folder, name = os.path.split(full)
            return os.path.join(os.path.realpath(folder), name)
        return os.path.realpath(full)
    except (OSError, TypeError, ValueError):
        return None


class Guarded:
    """A function of `os` whose paths are led elsewhere; as a class attribute it is no method."""

    def __init__(self, ward: Ward, real: Callable[..., Any], paths: Any) -> None:
        self._ward = ward
        self._real = self.__wrapped__ = real
        self._paths = paths
        self.__name__ = self.__qualname__ = getattr(real, "__name__", "")
        self.__doc__ = real.__doc__
        self.__module__ = getattr(real, "__module__", "") or ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._ward.is_at_work:
            return self._real(*args, **kwargs)
        given = list(args)
        is_beside = False
        for position, keyword, mode, folder in self._paths:
            path = given[position] if position < len(given) else kwargs.get(keyword)
            if path is None:
                continue
            beside = kwargs.get(folder)
            if beside is not None:
                path, is_inside = self._beside(path, beside)
                if is_inside:
                    is_beside = True
                    continue
                kwargs.pop(folder)
            path = self._ward.led(path, mode)
            if position < len(given):
                given[position] = path
            else:
                kwargs[keyword] = path
        if is_beside:  # the hook would take the path for one of the working folder
            return self._ward.work(self._real, *given, **kwargs)
        return self._real(*given, **kwargs)

    def _beside(self, path: Any, folder: int) -> tuple[Any, bool]:
        """Return the whole path of a name in an open folder, and whether that is in the copy."""
        name = os.fsdecode(path)
        home = self._ward.work(os.readlink, f"/proc/self/fd/{folder}")
        full = os.path.join(home, name)
        real = self._ward.work(os.path.realpath, os.path.dirname(full))
        return full, not os.path.isabs(name) and self._ward.mirror.is_free(real)

    def __repr__(self) -> str:
        return repr(self._real)


class GuardedOpen(Guarded):
    """`open`: how a path is meant follows from the mode."""

    def __call__(self, file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
        """Open a file, in the copy if it is to be written."""
        if isinstance(file, int) or self._ward.is_at_work:
            return self._real(file, mode, *args, **kwargs)
        text = mode if isinstance(mode, str) else "r"
        if "x" in text:
            meant = PLACE
        elif "w" in text:
            meant = EMPTY
        else:
            meant = CHANGE if "a" in text or "+" in text else READ
        return self._real(self._ward.led(file, meant), mode, *args, **kwargs)


class GuardedLowOpen(Guarded):
    """`os.open`: how a path is meant follows from the flags."""

    def __call__(self, path: Any, flags: int, *args: Any, **kwargs: Any) -> Any:
        """Open a file, in the copy if it is to be written."""
        if flags & os.O_CREAT and flags & os.O_EXCL:
            meant = PLACE
        elif flags & os.O_TRUNC:
            meant = EMPTY
        else:
            meant = CHANGE if flags & WRITES else READ
        call = Guarded(self._ward, self._real, ((0, "path", meant, "dir_fd"),))
        return call(path, flags, *args, **kwargs)


class GuardedLink(Guarded):
    """`os.link`: a second name of a file outside would be a way to write to it."""

    def __call__(self, src: Any, dst: Any, **kwargs: Any) -> Any:
        """Make another name for a file, or a copy where the file is not ours."""
        ward = self._ward
        if ward.is_at_work or kwargs.get("src_dir_fd") or kwargs.get("dst_dir_fd"):
            return self._real(src, dst, **kwargs)
        source, target = ward.led(src, READ), ward.led(dst, PLACE)
        if ward.mirror.is_free(ward.work(os.path.realpath, os.fsdecode(source))):
            return self._real(source, target, **kwargs)
        if ward.work(os.path.lexists, target):
            raise FileExistsError(17, "File exists", os.fsdecode(dst))
        return ward.work(ward.mirror.copy, os.fsdecode(source), os.fsdecode(target))


def apply(values: Mapping[str, str], report: ChangeReport) -> None:
    """Guard this process, or end it."""
    try:
        ward = Ward(values, report)
        _lead_finders(ward)
        _install(ward)
        foreign_writers.install(ward)
        programs.install(ward)
        _listen(ward)
    except BaseException as error:
        message = f"{SIGN}the guard cannot be set up: {type(error).__name__}: {error}\n"
        os.write(2, message.encode(errors="replace"))
        os._exit(FAILED)
    ward.tell("guarded", sys.executable or "python")


def _lead_finders(ward: Ward) -> None:
    """Import the copy where the project is installed in place by a finder with a list."""
    for finder in list(sys.meta_path):
        home = sys.modules.get(getattr(finder, "__module__", "") or "")
        mapping = getattr(home, "MAPPING", None)
        if isinstance(mapping, dict) and "editable" in (getattr(home, "__name__", "") or ""):
            mapping.update({name: ward.imported(path) for name, path in mapping.items()})


def _install(ward: Ward) -> None:
    made: dict[Any, Guarded] = {}
    for name, paths in _FUNCTIONS.items():
        if hasattr(os, name):
            made[getattr(os, name)] = guarded = Guarded(ward, getattr(os, name), paths)
            setattr(os, name, guarded)
    made[os.open] = GuardedLowOpen(ward, os.open, ())
    os.open = made[os.open]
    if hasattr(os, "link"):
        made[os.link] = GuardedLink(ward, os.link, ())
        os.link = made[os.link]
    builtins.open = io.open = GuardedOpen(ward, builtins.open, ())
    for can in ("dir_fd", "fd", "follow_symlinks", "effective_ids"):
        known: set[Any] = getattr(os, f"supports_{can}", set())
        known |= {guarded for real, guarded in made.items() if real in known}


def _listen(ward: Ward) -> None:
    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if isinstance(flags, int) and flags & WRITES and not isinstance(path, int):
                ward.check("writing", path, is_link_itself=False)
        elif event in _AUDITED:
            for index, is_link_itself in _AUDITED[event]:
                if index < len(args):
                    ward.check(event, args[index], is_link_itself=is_link_itself)
        elif event == "socket.connect":
            programs.note_connection(ward, args[1])

    sys.addaudithook(hook)
