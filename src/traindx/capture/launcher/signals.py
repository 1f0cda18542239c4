"""Signals: what was sent to traindx alone is passed on to the command.

The command shares our process group, so that a terminal, a shell or a scheduler that signals the
group reaches it directly. To tell the two apart there is a witness in the group: a process that
does nothing, and that a signal to the group ends.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

# those that stop, that only tell of ourselves, or that a program brings upon itself
_OWN = frozenset(
    {"SIGKILL", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCHLD", "SIGPIPE", "SIGSEGV",
     "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS", "SIGXFSZ", "SIGURG", "SIGWINCH",
     "SIGCONT", "SIGIO", "SIGINFO"}
)  # fmt: skip
WITNESS_S = 0.5  # the witness dies within a millisecond; on a busy machine it has to wait for that
PASSED_ON = frozenset(
    s for s in signal.valid_signals() if not (isinstance(s, signal.Signals) and s.name in _OWN)
)
HEARD = PASSED_ON | {signal.SIGCHLD, signal.SIGWINCH, signal.SIGCONT}


def hold_back() -> set[int]:
    """Let signals wait until they are asked for, and return the mask that was there before."""
    # whoever started us may have ignored it, and then nobody can wait for a child
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return {int(s) for s in signal.pthread_sigmask(signal.SIG_BLOCK, HEARD)}


def let_go(mask: Iterable[int]) -> None:
    """Forget the signals that wait, which were for the command, and restore the mask."""
    while next_signal(0.0) is not None:
        pass
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a request to end interrupt us as Ctrl-C does, where it would end us without a word.

    A scheduler that wants us gone gets the command's exit code, as an impatient user does.
    """
    wanted = [s for s in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) == signal.SIG_DFL]
    for number in wanted:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in wanted:
            signal.signal(number, signal.SIG_DFL)


def next_signal(timeout_s: float) -> int | None:
    """Return the next signal that was held back, or nothing if none comes in time."""
    if hasattr(signal, "sigtimedwait"):
        told = signal.sigtimedwait(HEARD, timeout_s)
        return None if told is None else told.si_signo
    deadline = time.monotonic() + timeout_s
    while True:
        waiting = signal.sigpending() & HEARD
        if waiting:
            return signal.sigwait(waiting)
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.05)


def name_of(number: int) -> str:
    """Return the name of a signal."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Witness:
    """A process of our group that a signal to the group ends, and that ends when we do."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._outlet, self._inlet = os.pipe()  # it reads from us, so it does not outlive us
        self._start()

    def saw(self, number: int) -> bool:
        """Tell whether a signal was sent to the whole group."""
        deadline = time.monotonic() + WITNESS_S
        while self._pid is not None:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = self._pid, 0
            if pid:
                self._start()
                return os.WIFSIGNALED(status) and os.WTERMSIG(status) == number
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
        return False

    def dismiss(self) -> None:
        """End it."""
        if self._pid is not None:
            with suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
        os.close(self._outlet)
        os.close(self._inlet)

    def _start(self) -> None:
        actions = [
            (os.POSIX_SPAWN_DUP2, self._outlet, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        try:
            self._pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", "ulimit -c 0; exec cat"],  # without a core file when it dies
                os.environ,
                file_actions=actions,
                setsigmask=[],
                setsigdef=list(PASSED_ON),
            )
        except OSError:  # without a witness every signal is passed on, some for a second time
            self._pid = None


def reach(child: int, number: int, witness: Witness) -> bool:
    """Pass a signal on to the command unless it has it already; tell whether it was passed on."""
    try:
        is_in_our_group = os.getpgid(child) == os.getpgrp()
        if is_in_our_group and witness.saw(number):
            return False
        os.kill(child, number)
    except OSError:  # it has ended, or belongs to another user now
        return False
    return True
