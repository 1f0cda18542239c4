"""The ways on which output comes from the command: a terminal where we have one, else a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

STDIN, STDOUT, STDERR = 0, 1, 2
PIPE_BYTES = 1 << 20  # room for what is printed while the interpreter is busy elsewhere
_NO_SIZE = struct.pack("HHHH", 0, 0, 0, 0)


@dataclass(slots=True)
class Channel:
    """One way out of the command: it writes to `inlet`, we read from `outlet` for `target`."""

    outlet: int
    inlet: int
    target: int
    stands_for: tuple[int, ...]  # the command's file descriptors
    is_terminal: bool = False

    def close_inlet(self) -> None:
        """Let go of the command's end: the output ends when the command lets go too."""
        os.close(self.inlet)

    def follow_size(self) -> None:
        """Give the command's terminal the size of ours."""
        if self.is_terminal:
            with suppress(OSError):
                size = fcntl.ioctl(self.target, termios.TIOCGWINSZ, _NO_SIZE)
                fcntl.ioctl(self.outlet, termios.TIOCSWINSZ, size)


def open_channels(closed: Collection[int] = ()) -> list[Channel]:
    """Open a channel for each place that our output goes to; two names of one place share one."""
    wanted: list[tuple[int, ...]] = [(fd,) for fd in (STDOUT, STDERR) if fd not in closed]
    if len(wanted) == 2 and _identity(STDOUT) == _identity(STDERR):
        wanted = [(STDOUT, STDERR)]
    channels = (_open(fds) for fds in wanted)
    return [c for c in channels if c is not None]


def fill_closed() -> set[int]:
    """Fill standard streams that are closed, or a file of ours would take their place.

    The command finds them closed all the same: what we open is not inherited.
    """
    closed = set()
    for fd in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(fd)
        except OSError:
            closed.add(os.open(os.devnull, os.O_RDWR))
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
    return closed


def _identity(fd: int) -> tuple[int, int, int]:
    about = os.fstat(fd)
    return about.st_dev, about.st_ino, about.st_rdev


def _open(fds: tuple[int, ...]) -> Channel | None:
    target = fds[0]
    try:
        return _terminal(fds) if os.isatty(target) else _pipe(fds)
    except OSError:  # no more terminals: the command writes to ours directly, unrecorded
        return None


def _pipe(fds: tuple[int, ...]) -> Channel:
    outlet, inlet = os.pipe()
    resize = getattr(fcntl, "F_SETPIPE_SZ", None)
    if resize is not None:
        with suppress(OSError):
            fcntl.fcntl(inlet, resize, PIPE_BYTES)
    return Channel(outlet, inlet, fds[0], fds)


def _terminal(fds: tuple[int, ...]) -> Channel:
    outlet, inlet = pty.openpty()
    channel = Channel(outlet, inlet, fds[0], fds, is_terminal=True)
    try:
        settings = termios.tcgetattr(fds[0])
        settings[1] &= ~termios.OPOST  # our own terminal translates newlines, once
        settings[3] &= ~(termios.ECHO | termios.ECHONL)
        termios.tcsetattr(inlet, termios.TCSANOW, settings)
    except termios.error as error:
        os.close(outlet)
        os.close(inlet)
        raise OSError(*error.args) from error
    channel.follow_size()
    return channel
