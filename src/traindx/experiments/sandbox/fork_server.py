"""Reruns as forks of a process that has imported torch, where a command is a plain Python script.

Whatever goes wrong with it, the command is started the usual way.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import IO, Any

from traindx.capture.launcher.launch import INJECTED
from traindx.experiments.sandbox.commands import PYTHON

ZYGOTE = Path(__file__).resolve().parent.parent / "interventions" / "zygote.py"
WARM_UP_S = 120.0
MOST_REQUEST = 64 << 10  # bytes; a longer environment is started the usual way
TOLD_S = 10.0  # for the number of a child


class ForkedProcess:
    """A fork, as far as an attempt needs to know it: it looks like a started process."""

    def __init__(self, pid: int, outlet: IO[bytes], server: ForkServer) -> None:
        self.pid = pid
        self.stdout: IO[bytes] | None = outlet
        self._server = server

    @property
    def returncode(self) -> int | None:
        return self._server.code_of(self.pid)

    def poll(self) -> int | None:
        """Return how it ended, or None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        code = self._server.awaited(self.pid, timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
        return code


class ForkServer:
    """A warm interpreter of the user's, and the forks that were made of it."""

    def __init__(self, python: str, environ: Mapping[str, str], folder: Path) -> None:
        own, theirs = socket.socketpair()
        self._line = own
        self._asking = Lock()
        self._change = Condition()
        self._codes: dict[int, int] = {}
        self._pids: list[int] = []
        self._is_ready = self._is_gone = False
        made = {k: v for k, v in environ.items() if not k.startswith("TRAINDX_")}
        made.pop("PYTHONPATH", None)
        made |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            [python, str(ZYGOTE), str(theirs.fileno())],
            cwd=folder,
            env=made,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        Thread(target=self._listen, name="traindx-forks", daemon=True).start()

    def start(
        self, argv: Sequence[str], cwd: Path, environ: Mapping[str, str]
    ) -> ForkedProcess | None:
        """Start a fork that runs a script; None where none can be made."""
        if not self._awaits(lambda: self._is_ready, WARM_UP_S):
            return None
        asked = {"argv": list(argv), "cwd": str(cwd), "environ": dict(environ),
                 "injected": str(INJECTED)}  # fmt: skip
        request = json.dumps(asked).encode()
        if len(request) > MOST_REQUEST:  # it might arrive in pieces
            return None
        inlet, outlet = os.pipe()
        with self._asking:
            known = len(self._pids)
            try:
                socket.send_fds(self._line, [request], [outlet])
            except OSError:
                os.close(inlet)
                return None
            finally:
                os.close(outlet)
            if not self._awaits(lambda: len(self._pids) > known, TOLD_S):
                os.close(inlet)
                return None
            return ForkedProcess(self._pids[-1], os.fdopen(inlet, "rb"), self)

    def code_of(self, pid: int) -> int | None:
        """Return how a fork ended; a lost server has ended all of them."""
        with self._change:
            return self._codes.get(pid, 1 if self._is_gone else None)

    def awaited(self, pid: int, timeout: float | None) -> int | None:
        """Wait for the end of a fork."""
        self._awaits(lambda: pid in self._codes, timeout)
        return self.code_of(pid)

    def close(self) -> None:
        """End the server; its forks are ended by whoever started them."""
        self._line.close()
        self._process.kill()
        self._process.wait()

    def _awaits(self, is_so: Any, timeout: float | None) -> bool:
        with self._change:
            self._change.wait_for(lambda: is_so() or self._is_gone, timeout)
            return bool(is_so())

    def _listen(self) -> None:
        rest = b""
        while True:
            try:
                data = self._line.recv(1 << 16)
            except OSError:
                data = b""
            with self._change:
                if not data:
                    self._is_gone = True
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
                self._change.notify_all()
            if not data:
                return

    def _take(self, told: Mapping[str, int]) -> None:
        if "ready" in told:
            self._is_ready = True
        elif "pid" in told:
            self._pids.append(told["pid"])
        elif "ended" in told:
            self._codes[told["ended"]] = told["code"]


def script_of(command: Sequence[str]) -> list[str] | None:
    """Return a script and its arguments, where a command is an interpreter with nothing else."""
    is_plain = len(command) > 1 and PYTHON.fullmatch(command[0]) and command[1].endswith(".py")
    return list(command[1:]) if is_plain else None


def is_possible() -> bool:
    """Tell whether this system can hand descriptors on and fork."""
    return hasattr(os, "fork") and hasattr(socket, "send_fds")
