"""Starting the command: in our place, with our files, plus where to record."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from traindx.capture.launcher.channels import Channel
from traindx.errors import NotStarted

NOT_EXECUTABLE, NOT_FOUND = 126, 127
INJECTED = Path(__file__).resolve().parent.parent / "recorder" / "injected"


def environment(
    given: Mapping[str, str], folder: Path | None, overhead: float, hang_after_s: float | None
) -> dict[str, str]:
    """Return the environment of the command: as it was given, and what the recorder needs."""
    made = dict(given)
    for name in ("TRAINDX_RECORDING", "TRAINDX_OVERHEAD", "TRAINDX_HANG_AFTER"):
        made.pop(name, None)  # of a traindx above us
    if folder is None:
        return made
    made["TRAINDX_RECORDING"] = str(folder)
    made["TRAINDX_OVERHEAD"] = f"{overhead:g}"
    if hang_after_s is not None:
        made["TRAINDX_HANG_AFTER"] = f"{hang_after_s:g}"
    paths = [p for p in given.get("PYTHONPATH", "").split(os.pathsep) if p != str(INJECTED)]
    kept = os.pathsep.join(paths)
    made["PYTHONPATH"] = f"{INJECTED}{os.pathsep}{kept}" if kept else str(INJECTED)
    return made


def start(
    command: Sequence[str],
    environ: Mapping[str, str],
    channels: Sequence[Channel],
    mask: Iterable[int],
) -> int:
    """Start the command and return its process id."""
    actions = [(os.POSIX_SPAWN_DUP2, c.inlet, fd) for c in channels for fd in c.stands_for]
    # Python ignores these two; the command is to find them as a shell would leave them
    defaults = [s for s in (signal.SIGPIPE, getattr(signal, "SIGXFSZ", None)) if s is not None]

    def spawn(file: str, arguments: list[str]) -> int:
        return os.posix_spawnp(
            file,
            arguments,
            environ,
            file_actions=actions,
            setsigmask=list(mask),
            setsigdef=defaults,
        )

    try:
        return spawn(command[0], list(command))
    except OSError as error:
        found = shutil.which(command[0])
        if error.errno == errno.ENOEXEC and found is not None:
            return spawn("/bin/sh", ["/bin/sh", found, *command[1:]])  # as execvp and shells do
        raise _explained(command[0], error, found) from error
    except ValueError as error:  # a NUL in an argument
        raise NotStarted(NOT_EXECUTABLE, f"{command[0]}: {error}") from error


def _explained(name: str, error: OSError, found: str | None) -> NotStarted:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        if found is not None:
            return NotStarted(NOT_FOUND, f"{found}: the interpreter that it names does not exist")
        if os.sep in name:
            return NotStarted(NOT_FOUND, f"{name}: no such file")
        return NotStarted(NOT_FOUND, f"{name}: command not found")
    if error.errno == errno.EACCES and Path(name).is_dir():
        return NotStarted(NOT_EXECUTABLE, f"{name}: is a folder, not a command")
    if error.errno == errno.EACCES:
        return NotStarted(NOT_EXECUTABLE, f"{name}: not executable")
    return NotStarted(NOT_EXECUTABLE, f"{name}: cannot be started: {error.strerror or error}")
