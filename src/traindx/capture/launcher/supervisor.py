"""The ride from start to end: start, relay, listen, watch, and say how it ended."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from traindx.capture.launcher import memory_pressure, stacks
from traindx.capture.launcher.alerts import FIRST_LOOK_S, Alerts
from traindx.capture.launcher.channels import Channel, fill_closed, open_channels
from traindx.capture.launcher.ending import End
from traindx.capture.launcher.launch import environment, start
from traindx.capture.launcher.output_log import OutputLog
from traindx.capture.launcher.record_tail import FollowedProcess, Following
from traindx.capture.launcher.recording_folder import (
    make_folder,
    make_spare_folder,
    shown,
    write_about,
)
from traindx.capture.launcher.relay import Relay
from traindx.capture.launcher.signals import Witness, hold_back, let_go, next_signal, reach
from traindx.capture.launcher.source_copies import Sources
from traindx.capture.launcher.voice import Voice
from traindx.errors import NotStarted

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.capture.launcher.alerts import Look

TICK_S = 1.0
# The recorder's own watchdog speaks first; a process whose interpreter is blocked cannot.
ASK_AFTER = 2.0  # times the patience of the watchdog
DEFAULT_PATIENCE_S = 300.0
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Trip:
    """What is to be run and how."""

    command: tuple[str, ...]
    output: str | None = None
    overhead: float = 0.02
    hang_after_s: float | None = None
    first_look_s: float = FIRST_LOOK_S


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """How it went: the end of the command, and where the recording is."""

    end: End
    folder: Path | None
    has_records: bool = False
    has_output: bool = False
    stalled: tuple[FollowedProcess, ...] = ()


def ride(trip: Trip, voice: Voice, look: Look | None = None) -> CommandOutcome:
    """Run a command as if it were alone, record it, and return how it ended.

    `look` diagnoses the recording while it grows; without it there are no alerts.
    """
    closed = fill_closed()  # before anything else is opened
    folder = choose_folder(trip, voice)
    mask = hold_back()
    try:
        return _Ride(trip, voice, folder, closed).run(mask, look)
    except NotStarted:
        if folder is not None:
            _remove_if_empty(folder)
        raise
    finally:
        let_go(mask)


def choose_folder(trip: Trip, voice: Voice) -> Path | None:
    """Make the folder of the recording; where that fails, the command runs all the same."""
    try:
        folder = make_folder(trip.output, trip.command)
    except OSError as error:
        wanted = trip.output or "the current folder"
        spare = make_spare_folder()
        but = "it is elsewhere then" if spare else "running without a recording"
        voice.say(f"cannot record in {wanted}: {error.strerror or error}; {but}")
        return spare
    return folder


@dataclass(slots=True)
class _Ride:
    trip: Trip
    voice: Voice
    folder: Path | None
    closed: set[int]
    child: int = 0
    started_s: float = 0.0
    relays: list[Relay] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    passed_on: list[int] = field(default_factory=list)
    following: Following | None = None
    sources: Sources | None = None
    asked: dict[int, float] = field(default_factory=dict)
    has_complained: bool = False
    about: dict[str, object] = field(default_factory=dict)
    alerts: Alerts | None = None

    def run(self, mask: set[int], look: Look | None) -> CommandOutcome:
        witness = Witness()  # before the command, so that it has seen what the command has
        try:
            return self._run(mask, look, witness)
        finally:
            witness.dismiss()

    def _run(self, mask: set[int], look: Look | None, witness: Witness) -> CommandOutcome:
        kills = memory_pressure.kills_counted()
        self._start(mask)
        log = OutputLog(self.folder, self._complain) if self.folder is not None else None
        self._start_relays(log)
        if look is not None and self.folder is not None:
            self.alerts = Alerts(self.folder, look, self.voice.remark, self.trip.first_look_s)
            self.alerts.start()
        try:
            status, max_rss = self._accompany(witness)
        finally:
            if self.alerts is not None:
                self.alerts.stop()
        end = self._end(status, max_rss, kills)
        self._finish_relays()
        if log is not None:
            log.close()
        return self._outcome(end)

    def _start(self, mask: set[int]) -> None:
        trip = self.trip
        cwd = _working_folder()
        made = environment(os.environ, self.folder, trip.overhead, trip.hang_after_s)
        self.channels = open_channels(self.closed)
        self.started_s = time.time()
        self.child = start(trip.command, made, self.channels, mask)
        for channel in self.channels:
            channel.close_inlet()
        self.about = {
            "k": "run",
            "v": FORMAT,
            "command": list(trip.command),
            "cwd": str(cwd),
            "host": socket.gethostname(),
            "started_s": self.started_s,
            "pid": self.child,
            "parent": os.getpid(),
        }
        if self.folder is not None:
            self.following = Following(self.folder)
            self.sources = Sources(self.folder, cwd)
            self._write_about({"is_running": True})
            self.voice.remark(f"recording to {shown(self.folder)}")

    def _start_relays(self, log: OutputLog | None) -> None:
        for channel in self.channels:
            keep = None if log is None else log.stream(is_alone=len(self.channels) == 1)
            self.relays.append(Relay(channel, keep, self.voice))
            self.relays[-1].start()

    # while it runs

    def _accompany(self, witness: Witness) -> tuple[int, int]:
        """Pass signals on and follow the records until the command has ended."""
        next_tick = 0.0
        while True:
            pid, status, usage = os.wait4(self.child, os.WNOHANG)
            if pid:
                return status, usage.ru_maxrss
            if time.monotonic() >= next_tick:
                self._tick()
                next_tick = time.monotonic() + TICK_S
            heard = next_signal(TICK_S)
            if heard is not None:
                self._answer(heard, witness)

    def _answer(self, heard: int, witness: Witness) -> None:
        if heard == signal.SIGCHLD:
            return
        if heard in (signal.SIGWINCH, signal.SIGCONT):
            for channel in self.channels:
                channel.follow_size()
            # it may have looked at the size before we changed it; a second notice does no harm
            with suppress(OSError):
                os.kill(self.child, heard)
            return
        if heard == signal.SIGTERM:
            self._ask_where_it_stands()
        if reach(self.child, heard, witness):
            self.passed_on.append(heard)

    def _ask_where_it_stands(self) -> None:
        """Have the processes write their stacks before they are ended: it may be for a hang."""
        if self.folder is not None and self.following is not None:
            self.following.look()
            stacks.ask(self.folder, [f.pid for f in self.following.processes.values()])

    def _tick(self) -> None:
        """Follow the records; whatever goes wrong here must not be felt by the command."""
        if self.following is None or self.sources is None:
            return
        try:
            self.following.look()
            self.sources.keep(self.following.take_sources())
            if self.following.take_signs() and self.alerts is not None:
                self.alerts.hurry()
            self._ask_the_silent()
        except OSError as error:
            self._complain(f"the recording is incomplete: {error.strerror or error}")

    def _ask_the_silent(self) -> None:
        assert self.folder is not None and self.following is not None
        patience_s = ASK_AFTER * (self.trip.hang_after_s or DEFAULT_PATIENCE_S)
        for followed in self.following.processes.values():
            is_silent = time.monotonic() - followed.grew_s > patience_s
            if is_silent and self.asked.get(followed.pid) != followed.grew_s:
                self.asked[followed.pid] = followed.grew_s  # once for each silence
                stacks.ask(self.folder, [followed.pid])

    def _complain(self, why: str) -> None:
        if not self.has_complained:
            self.has_complained = True
            self.voice.say(why)

    # when it has ended

    def _end(self, status: int, max_rss: int, kills: int | None) -> End:
        now = memory_pressure.kills_counted()
        is_signal = os.WIFSIGNALED(status)
        end = End(
            exit_code=None if is_signal else os.WEXITSTATUS(status),
            signal=os.WTERMSIG(status) if is_signal else None,
            started_s=self.started_s,
            ended_s=time.time(),
            peak_bytes=memory_pressure.peak_bytes(max_rss),
            memory_kills=None if kills is None or now is None else now - kills,
            passed_on=tuple(self.passed_on),
        )
        self._write_about(
            {
                "ended_s": end.ended_s,
                "exit_code": end.exit_code,
                "signal": end.signal,
                "is_running": False,
                "peak_rss_bytes": end.peak_bytes,
                "memory_kills": end.memory_kills,
            }
        )
        return end

    def _finish_relays(self) -> None:
        for relay in self.relays:
            relay.finish()
        is_impatient = False
        for relay in self.relays:
            # a reader that takes its time is waited for, as the command itself would have waited
            while not relay.wait(0.05) and not is_impatient:
                heard = next_signal(0.0)
                is_impatient = heard in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if any(relay.is_left_open for relay in self.relays):
            self.voice.remark("a process that the command left behind still holds its output")

    def _outcome(self, end: End) -> CommandOutcome:
        self._tick()
        following = self.following
        return CommandOutcome(
            end,
            self.folder,
            has_records=following is not None and bool(following.processes),
            has_output=any(relay.has_output for relay in self.relays),
            stalled=tuple(following.stalled) if following is not None else (),
        )

    def _write_about(self, more: Mapping[str, object]) -> None:
        if self.folder is None:
            return
        self.about.update(more)
        try:
            write_about(self.folder, self.about)
        except OSError as error:
            self._complain(f"the recording is incomplete: {error.strerror or error}")


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:  # removed meanwhile; the command may not mind
        return Path("/")


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
