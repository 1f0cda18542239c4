"""Output on its way from the command to where ours goes: unchanged, at once, and kept."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import time
from collections.abc import Callable
from contextlib import nullcontext
from errno import EIO, EPIPE
from select import select
from threading import Thread

from traindx.capture.launcher.channels import STDERR, Channel
from traindx.capture.launcher.voice import Voice, write_all

CHUNK_BYTES = 256 << 10
# After the end of the command its last output is there already. What still holds the channel are
# processes that it left behind.
SILENCE_S = 0.3
LONGEST_S = 5.0


class Relay:
    """A thread that hands output on. It stops at the end of the output, or soon after `finish`."""

    def __init__(
        self, channel: Channel, keep: Callable[[bytes], None] | None, voice: Voice
    ) -> None:
        self.is_left_open = False
        self._channel = channel
        self._keep = keep
        self._voice = voice
        self._is_beside_voice = STDERR in channel.stands_for or (
            channel.is_terminal and os.isatty(STDERR)
        )
        self._has_complained = False
        self._handed_on = 0
        self._wake_outlet, self._wake_inlet = os.pipe()
        self._thread = Thread(target=self._run, name="traindx-relay", daemon=True)

    @property
    def has_output(self) -> bool:
        """Whether anything came."""
        return self._handed_on > 0

    def start(self) -> None:
        """Start to relay."""
        self._thread.start()

    def finish(self) -> None:
        """Wait no longer than needed for output of processes that were left behind."""
        os.close(self._wake_inlet)

    def wait(self, timeout_s: float) -> bool:
        """Wait until everything is handed on; tell whether it is."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        outlet, wake = self._channel.outlet, self._wake_outlet
        deadline = None
        owed = 0  # what the command itself had written when it ended, however slow our reader is
        while True:
            watched = [outlet, wake] if deadline is None else [outlet]
            ready, _, _ = select(watched, [], [], None if deadline is None else SILENCE_S)
            if wake in ready:
                owed = self._handed_on + waiting_bytes(outlet)
                deadline = time.monotonic() + LONGEST_S
            if outlet in ready and not self._hand_on():
                break
            is_over = deadline is not None and time.monotonic() > deadline
            if deadline is not None and (not ready or (is_over and self._handed_on >= owed)):
                self.is_left_open = True
                break
        os.close(outlet)  # whoever still writes learns that nobody reads
        os.close(wake)

    def _hand_on(self) -> bool:
        """Hand on what is there; tell whether there can be more."""
        try:
            data = os.read(self._channel.outlet, CHUNK_BYTES)
        except OSError:  # a terminal that nobody holds any more
            return False
        if not data:
            return False
        self._handed_on += len(data)
        can_go_on = self._write(data)
        if self._keep is not None:
            self._keep(data)
        return can_go_on

    def _write(self, data: bytes) -> bool:
        with self._voice.floor if self._is_beside_voice else nullcontext():
            error = write_all(self._channel.target, data)
            if self._is_beside_voice:
                self._voice.is_mid_line = data[-1:] != b"\n"
        if error is None:
            return True
        if error.errno == EPIPE or (error.errno == EIO and self._channel.is_terminal):
            return False  # the reader is gone; the command is to learn it as it would alone
        if not self._has_complained:
            self._has_complained = True
            self._voice.say(f"output of the command is lost: {error.strerror or error}")
        return True


def waiting_bytes(file: int) -> int:
    """Return how much can be read at once."""
    try:
        told = fcntl.ioctl(file, termios.FIONREAD, struct.pack("i", 0))
    except OSError:
        return 0
    return int(struct.unpack("i", told)[0])
