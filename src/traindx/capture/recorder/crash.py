"""Stacks of a process that cannot speak for itself: one that crashed, or holds the interpreter."""

from __future__ import annotations

import atexit
import faulthandler
import os
import signal
from pathlib import Path
from typing import Any

# the parent sends it to ask for stacks; far from the signals that programs and schedulers use
ASK = getattr(signal, "SIGRTMIN", 0) + 7 if hasattr(signal, "SIGRTMIN") else 0
SUFFIX = ".stack"


class _State:
    """The file of this process, and which of the interpreter's handlers are ours."""

    folder: Path | None = None
    file: Any = None
    is_fatal_ours = False
    is_ask_ours = False


_state = _State()


def enable(folder: str | os.PathLike[str]) -> None:
    """Have all stacks written to `<folder>/<pid>.stack` on a crash, or when asked for."""
    try:
        is_first = _state.folder is None
        _state.folder = Path(folder)
        _arm()
        if is_first:
            atexit.register(_clean)
            os.register_at_fork(after_in_child=_after_fork)
    except Exception:
        return


def disable() -> None:
    """Give the handlers back and remove the file if nothing was written."""
    try:
        if _state.is_fatal_ours:
            faulthandler.disable()
        if _state.is_ask_ours:
            faulthandler.unregister(ASK)
        _state.is_fatal_ours = _state.is_ask_ours = False
        if _state.file is not None:
            _clean()
            _state.file.close()
            _state.file = None
    except Exception:
        return


def _arm() -> None:
    assert _state.folder is not None
    _state.folder.mkdir(parents=True, exist_ok=True)
    file = (_state.folder / f"{os.getpid()}{SUFFIX}").open("ab", buffering=0)
    if _state.is_fatal_ours or not faulthandler.is_enabled():
        faulthandler.enable(file, all_threads=True)
        _state.is_fatal_ours = True
    is_free = ASK and signal.getsignal(ASK) == signal.SIG_DFL
    if hasattr(faulthandler, "register") and (_state.is_ask_ours or is_free):
        faulthandler.register(ASK, file, all_threads=True, chain=False)
        _state.is_ask_ours = True
    _state.file, old = file, _state.file
    if old is not None:
        old.close()


def _after_fork() -> None:
    """A child writes to a file of its own, or its crash would pass for its parent's."""
    try:
        if _state.file is not None:
            _arm()
    except Exception:
        return


def _clean() -> None:
    """Remove what nothing was written to; forked workers leave without a clean-up of their own."""
    try:
        assert _state.folder is not None
        for path in _state.folder.glob(f"*{SUFFIX}"):
            pid = int(path.stem)
            if path.stat().st_size == 0 and (pid == os.getpid() or not _is_alive(pid)):
                path.unlink()
    except Exception:
        return


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
