"""Where in the user's code something happens: frames, files and lines, found cheaply."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

# Code without a file that a person typed; everything else in angle brackets is generated.
_TYPED = ("<stdin>", "<string>", "<ipython-input", "<python-input", "<cell")
_LIMIT = 20_000  # entries of a cache, so that generated code cannot fill the memory

_is_user: dict[str, bool] = {}
_places: dict[tuple[str, int, str], dict[str, Any]] = {}


@lru_cache(maxsize=1)
def _library_roots() -> tuple[str, ...]:
    own = Path(__file__).resolve().parent
    roots = [own]
    if own.parents[1].name == "traindx":
        roots.append(own.parents[1])
    paths = sysconfig.get_paths()
    roots += [Path(paths[key]).resolve() for key in ("stdlib", "platstdlib") if paths.get(key)]
    torch_file = getattr(sys.modules.get("torch"), "__file__", None)
    if torch_file:
        roots.append(Path(torch_file).resolve().parent)
    return tuple(f"{root}{os.sep}" for root in roots)


@lru_cache(maxsize=1)
def _scripts() -> Path:
    return Path(sysconfig.get_paths().get("scripts", "")).resolve()


_DEMO = f"{os.sep}traindx{os.sep}demo{os.sep}"
_INSTALLED = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


def _judge(path: str) -> bool:
    if path.startswith("<"):
        return path.startswith(_TYPED)
    if path.startswith(_library_roots()) and _DEMO not in path:
        return False  # most files are judged without a look at the disk
    if any(folder in path for folder in _INSTALLED):
        return False
    resolved = Path(path).resolve()
    real = str(resolved)
    if _DEMO in real:  # our demonstration plays the part of a user's script
        return True
    if any(folder in real for folder in _INSTALLED):
        return False
    if not resolved.suffix and resolved.parent == _scripts():
        return False  # torchrun, accelerate: written by an installer
    return not real.startswith(_library_roots())


def is_user_file(path: str) -> bool:
    """Say whether a file is the user's own, and not of Python, of a package or of ours."""
    known = _is_user.get(path)
    if known is None:
        try:
            known = _judge(path)
        except (OSError, ValueError):
            known = False
        if len(_is_user) < _LIMIT:
            _is_user[path] = known
    return known


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """Return the innermost frame of the user's code, from a frame (the caller's) outwards."""
    found = sys._getframe(1) if frame is None else frame
    while found is not None and not is_user_file(found.f_code.co_filename):
        found = found.f_back  # type: ignore[assignment]
    return found


def user_place(frame: FrameType | None = None) -> dict[str, Any] | None:
    """Return the innermost line of the user's code, from a frame (the caller's) outwards."""
    found = user_frame(sys._getframe(1) if frame is None else frame)
    return None if found is None else _place(found.f_code, found.f_lineno, found.f_globals)


def place_of(where: FrameType | TracebackType) -> dict[str, Any]:
    """Return the line at which a frame stands, or an entry of a traceback stood."""
    if isinstance(where, TracebackType):
        frame = where.tb_frame
        return _place(frame.f_code, where.tb_lineno, frame.f_globals)
    return _place(where.f_code, where.f_lineno, where.f_globals)


def frames_below(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield a frame and its callers, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def _place(code: CodeType, line: int | None, names: dict[str, Any]) -> dict[str, Any]:
    number = line or code.co_firstlineno
    key = (code.co_filename, number, code.co_name)
    known = _places.get(key)
    if known is None:
        try:
            text = linecache.getline(code.co_filename, number, names).strip()
        except Exception:  # a loader of the user's may raise anything
            text = ""
        known = {
            "file": _absolute(code.co_filename),
            "line": number,
            "function": code.co_name,
            "code": text[:400],
        }
        if len(_places) < _LIMIT:
            _places[key] = known
    return dict(known)


def _absolute(path: str) -> str:
    if path.startswith("<"):
        return path
    try:
        absolute = Path.cwd() / path  # leaves an absolute path as it is
        return str(absolute) if absolute.exists() else path
    except OSError:  # the working folder is gone
        return path
