"""The processes that work for the server: warm ones are used again, cancelled ones are ended."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from traindx.errors import TraindxError

AT_ONCE = 3
GRACE_S = 15.0  # beyond its own limit a call may need this long to come to its end
MAX_ANSWER = 32 << 20
_PROGRAM = "import sys; sys.path[:] = {paths!r}; from traindx.agent.worker import main; main()"


class Workers:
    """A few processes, each of which answers one request at a time."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []
        self._places = anyio.CapacityLimiter(AT_ONCE)

    async def ask(self, request: Mapping[str, Any], max_time_s: float) -> dict[str, Any]:
        """Return the answer to a request; end the process if the caller no longer wants it."""
        async with self._places:
            worker = self._idle.pop() if self._idle else await _Worker.start()
            is_whole = False
            try:
                with anyio.fail_after(max_time_s + GRACE_S):
                    answer = await worker.ask(request)
                is_whole = True
            except TimeoutError:
                why = f"it took longer than {max_time_s:.0f} s and was ended"
                raise TraindxError(f"{why}. Try: fewer or smaller files") from None
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.IncompleteRead):
                why = "the process that worked on it died, perhaps for want of memory"
                raise TraindxError(f"{why}. Try: fewer or smaller files") from None
            finally:
                if is_whole:
                    self._idle.append(worker)
                else:
                    await worker.end()
            return answer

    async def close(self) -> None:
        """End the processes that wait for work."""
        while self._idle:
            await self._idle.pop().end()


class _Worker:
    """One process and the lines that go to and fro."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._process = process
        self._requests = process.stdin
        self._answers = BufferedByteReceiveStream(process.stdout)

    @classmethod
    async def start(cls) -> _Worker:
        # the paths as they are here: a file in the working folder must not pose as a library
        program = _PROGRAM.format(paths=[path for path in sys.path if path])
        try:
            process = await anyio.open_process(
                [sys.executable, "-c", program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None,
            )
        except OSError as error:
            why = f"no process can be started: {error.strerror or error}"
            raise TraindxError(f"{why}. Try: again later") from None
        return cls(process)

    async def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        await self._requests.send(json.dumps(request).encode() + b"\n")
        line = await self._answers.receive_until(b"\n", MAX_ANSWER)
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def end(self) -> None:
        """End the process at once, even while the caller is being cancelled."""
        with anyio.CancelScope(shield=True):
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    self._process.kill()
            await self._process.aclose()
