"""One rerun as a process: apart from the terminal, recorded, and ended with all below it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from threading import Thread

from traindx.capture.launcher import stacks
from traindx.capture.launcher.output_log import OutputLog
from traindx.capture.launcher.record_tail import Following
from traindx.capture.launcher.recording_folder import write_about
from traindx.capture.launcher.source_copies import Sources
from traindx.capture.launcher.supervisor import FORMAT
from traindx.errors import CannotRerun
from traindx.experiments.sandbox.fork_server import ForkedProcess, ForkServer, script_of

TICK_S = 0.1
GRACE_S = 3.0  # between the request to end and the end
CHUNK_BYTES = 256 << 10
MARK = "TRAINDX_RECORDING"


@dataclass(slots=True, eq=False)
class Attempt:
    """A command that runs for a limited time, with its recording in `folder`."""

    command: Sequence[str]
    cwd: Path
    environ: Mapping[str, str]
    folder: Path
    shown_command: Sequence[str] = ()
    shown_cwd: Path = Path()
    server: ForkServer | None = None  # a warm interpreter to fork from
    exit_code: int | None = None
    signal: int | None = None
    is_out_of_time: bool = False
    is_abandoned: bool = False  # set from another thread: it ends at the next look
    first_step_s: float | None = None
    duration_s: float = 0.0
    _started_s: float = 0.0
    _process: subprocess.Popen[bytes] | ForkedProcess | None = None
    _about: dict[str, object] = field(default_factory=dict)

    def run(self, time_s: float) -> None:
        """Run until it ends or time is up; whatever interrupts us ends it too."""
        self.folder.mkdir(parents=True)
        log = OutputLog(self.folder, lambda _: None)
        self._started_s = time.time()
        process = self._process = self._start()
        reader = Thread(target=self._read, args=(log,), name="traindx-rerun", daemon=True)
        reader.start()
        try:
            self._write_about({"is_running": True, "pid": process.pid})
            self._accompany(time.monotonic() + time_s)
        finally:
            self._end_all()
            reader.join(GRACE_S)
            log.close()
            self._conclude()

    def _start(self) -> subprocess.Popen[bytes] | ForkedProcess:
        script = script_of(self.command) if self.server is not None else None
        if script is not None and self.server is not None:
            forked = self.server.start(script, self.cwd, self.environ)
            if forked is not None:
                return forked
        try:
            return subprocess.Popen(
                list(self.command),
                cwd=self.cwd,
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise CannotRerun(f"{self.command[0]}: cannot be started: {why or error}") from error

    def _read(self, log: OutputLog) -> None:
        assert self._process is not None and self._process.stdout is not None
        outlet = self._process.stdout.fileno()
        with suppress(OSError, ValueError):
            while data := os.read(outlet, CHUNK_BYTES):
                log.append(data)

    def _accompany(self, deadline: float) -> None:
        assert self._process is not None
        following = Following(self.folder)
        sources = Sources(self.folder, self.cwd)
        is_over = False
        while not is_over:
            try:
                self._process.wait(min(TICK_S, max(0.0, deadline - time.monotonic())))
                is_over = True
            except subprocess.TimeoutExpired:
                is_over = self.is_out_of_time = self.is_abandoned or time.monotonic() >= deadline
            with suppress(OSError):
                following.look()
                sources.keep(following.take_sources())
            if following.processes and self.first_step_s is None:
                self.first_step_s = time.time() - self._started_s  # of the first backward pass
        if self.is_out_of_time:  # it may hang: where does it stand?
            stacks.ask(self.folder, [f.pid for f in following.processes.values()])
            with suppress(OSError):
                following.look()
                sources.keep(following.take_sources())

    # the end

    def _end_all(self) -> None:
        """End the process and all that came of it: politely, then for good."""
        assert self._process is not None
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self._signal_all(number):
                break
            deadline = time.monotonic() + GRACE_S
            while time.monotonic() < deadline and (self._process.poll() is None or self._left()):
                time.sleep(0.02)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)

    def _signal_all(self, number: int) -> bool:
        assert self._process is not None
        left = self._left()
        if self._process.poll() is None:
            left.add(self._process.pid)
        for pid in left:
            with suppress(OSError):
                os.kill(pid, number)
        with suppress(OSError):  # where there is no list of processes
            os.killpg(self._process.pid, number)
        return bool(left)

    def _left(self) -> set[int]:
        """Return the living processes of the rerun: of its session, or with its environment."""
        assert self._process is not None
        mark = f"{MARK}={self.folder}".encode()
        session = self._process.pid
        found = {pid for pid in _processes() if _session(pid) == session or _carries(pid, mark)}
        return found - {os.getpid(), session}

    def _conclude(self) -> None:
        assert self._process is not None
        code = self._process.returncode
        ended_s = time.time()
        self.duration_s = ended_s - self._started_s
        self.exit_code = code if code is not None and code >= 0 else None
        self.signal = -code if code is not None and code < 0 else None
        told = first_row_s(self.folder)
        if told is not None:
            self.first_step_s = max(0.0, told - self._started_s)
        if self._process.stdout is not None:
            self._process.stdout.close()
        about = {"ended_s": ended_s, "exit_code": self.exit_code, "signal": self.signal}
        self._write_about({**about, "is_running": False})

    def _write_about(self, more: Mapping[str, object]) -> None:
        self._about = {
            "k": "run",
            "v": FORMAT,
            "command": list(self.shown_command or self.command),
            "cwd": str(self.shown_cwd if self.shown_command else self.cwd),
            "host": socket.gethostname(),
            "started_s": self._started_s,
            "parent": os.getpid(),
            **self._about,
            **more,
        }
        with suppress(OSError):
            write_about(self.folder, self._about)


def first_row_s(folder: Path) -> float | None:
    """Return when the first optimizer step of a recording was taken."""
    times = []
    for path in folder.glob("rank*-*.jsonl"):
        with suppress(OSError), path.open("rb") as file:
            block = next((line for line in file if line.startswith(b'{"k":"steps"')), b"")
            times += _times(block)
    return min(times, default=None)


def _times(line: bytes) -> list[float]:
    """Return the times of the rows that were steps; losses without a step have no length."""
    try:
        block = json.loads(line)
        rows = zip(block["time_s"], block["total_s"], strict=True)
        return [at for at, length in rows if length is not None and isfinite(length)]
    except (ValueError, KeyError, TypeError):
        return []


def _processes() -> list[int]:
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
    return []


def _session(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - many times a second
            fields = file.read().rpartition(b")")[2].split()
        return -1 if fields[0] == b"Z" else int(fields[3])
    except (OSError, ValueError, IndexError):
        return -1


def _carries(pid: int, mark: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return mark in file.read().split(b"\0")
    except OSError:
        return False
