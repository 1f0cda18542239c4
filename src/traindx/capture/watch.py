"""Recording from inside the code: what `with traindx.watch(model, optimizer): …` holds."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from traindx.capture.launcher.recording_folder import make_folder, write_about
from traindx.capture.launcher.source_copies import Sources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traindx.capture.recorder import Session
    from traindx.model.findings import Diagnosis


class Watch:
    """Records the training inside a `with` block, as `traindx run` does from outside.

    Under `traindx run` the block records nothing of its own, for everything is recorded already.
    """

    def __init__(
        self,
        given: Sequence[object],
        diagnose: Callable[[Path], Diagnosis],
        *,
        output: str | os.PathLike[str] | None = None,
        overhead: float = 0.02,
        hang_after_s: float | None = None,
    ) -> None:
        self._given = given
        self._diagnose = diagnose
        self._output = None if output is None else os.fspath(output)
        self._overhead = overhead
        self._hang_after_s = hang_after_s
        self._session: Session | None = None
        self._about: dict[str, object] = {}
        self._training: set[str] = set()  # modules that stood around the block when it began
        self.folder: Path | None = None
        """The folder of the recording, once it has begun."""

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._session is not None and kind is not None:
            self._session.exception_ends(kind, error, traceback, "")
        self.stop()

    def start(self) -> None:
        """Begin to record; for code that has no place for a block."""
        outer = os.environ.get("TRAINDX_RECORDING")
        if outer and "traindx_recorder" in sys.modules:
            self.folder = Path(outer)
            return
        if self._session is not None:
            return
        from traindx.capture import recorder
        from traindx.capture.recorder import host

        given = {type(value).__module__ for value in self._given}
        self._training = given | host.modules_on_the_stack()
        self.folder = self._share_folder()
        self._about = {
            "k": "run",
            "v": 1,
            "command": [str(a) for a in sys.argv],
            "cwd": str(Path.cwd()),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "parent": os.getpid(),
            "started_s": time.time(),
            "is_running": True,
        }
        if _rank() == 0:
            write_about(self.folder, self._about)
        self._session = recorder.start(
            str(self.folder), overhead=self._overhead, hang_after_s=self._hang_after_s
        )
        self._session.given = list(self._given)

    def stop(self) -> None:
        """End the recording, and take every hook away."""
        session, self._session = self._session, None
        if session is None or self.folder is None:
            return
        from traindx.capture.recorder import host

        files = host.sources(host.reachable_modules(self._training))
        session.finish()
        if session.hooks is not None:
            session.hooks.remove()
        if _rank() == 0:
            self._about.update(ended_s=time.time(), is_running=False)
            try:
                Sources(self.folder, Path.cwd()).keep(files)
                write_about(self.folder, self._about)
            except OSError as error:  # the training is over; its result must not be lost to this
                print(f"traindx: {self.folder}: {error.strerror or error}", file=sys.stderr)

    def diagnose(self) -> Diagnosis:
        """Diagnose what was recorded, also while it still grows."""
        if self.folder is None:
            raise RuntimeError("nothing was recorded yet: call start(), or use it in a with block")
        if self._session is not None and self._session.writer is not None:
            self._session.writer.flush()
        return self._diagnose(self.folder)

    def _share_folder(self) -> Path:
        """Return a folder that the ranks of one run have in common."""
        if self._output is not None and _rank() > 0:
            Path(self._output).mkdir(parents=True, exist_ok=True)
            return Path(self._output).absolute()
        run = os.environ.get("TORCHELASTIC_RUN_ID", "")
        if self._output is None and run not in ("", "none") and _world_size() > 1:
            shared = Path.cwd() / "traindx-runs" / f"{run}-{os.getppid()}"
            shared.mkdir(parents=True, exist_ok=True)
            return shared
        return make_folder(self._output, sys.argv or ["python"])


def _rank() -> int:
    return int(os.environ.get("RANK") or 0)


def _world_size() -> int:
    return int(os.environ.get("WORLD_SIZE") or 1)
