"""Alerts while the command runs: a root cause that is new and well founded, one line, once."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from traindx.capture.launcher.recording_folder import ABOUT, shown

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.model.findings import Diagnosis, Hypothesis

    Look = Callable[[Path], Diagnosis | None]

FIRST_LOOK_S = 60.0
AT_SIGNS_S = 5.0  # from the start; before that a recording says little
# looking takes about 1% of one core, and less as the recording grows and each look takes longer
REST_PER_WORK = 100.0


class Alerts:
    """A thread that looks at the growing recording now and then and tells of what is new."""

    def __init__(
        self,
        folder: Path,
        look: Look,
        tell: Callable[[str], None],
        first_look_s: float = FIRST_LOOK_S,
    ) -> None:
        self._folder = folder
        self._look = look
        self._tell = tell
        self._first_look_s = first_look_s
        self._told: set[str] = set()
        self._seen: dict[str, int] = {}
        self._stopped = Event()
        self._hurried = Event()
        self._thread = Thread(target=self._run, name="traindx-alerts", daemon=True)

    def start(self) -> None:
        """Start to look, if there is a thread to be had."""
        with suppress(RuntimeError):
            self._thread.start()

    def stop(self) -> None:
        """Look no more, and tell nothing of a look that is under way."""
        self._stopped.set()
        self._hurried.set()

    def hurry(self) -> None:
        """Look soon: the records hold a sign that something is badly wrong."""
        self._hurried.set()

    def _run(self) -> None:
        rest_s = self._first_look_s
        self._stopped.wait(min(AT_SIGNS_S, rest_s))
        rest_s -= min(AT_SIGNS_S, rest_s)
        while True:
            self._hurried.wait(rest_s)
            if self._stopped.is_set():
                return
            self._hurried.clear()
            started_s = _work_s()
            try:
                self._look_once()
            except Exception:  # an alert is a courtesy; the diagnosis at the end says what failed
                return
            rest_s = max(self._first_look_s, REST_PER_WORK * (_work_s() - started_s))

    def _look_once(self) -> None:
        now = _sizes(self._folder)
        if now == self._seen or not now.keys() - {ABOUT}:
            return
        self._seen = now
        diagnosis = self._look(self._folder)
        if diagnosis is None:
            return
        for line in self.news(diagnosis):
            if not self._stopped.is_set():
                self._tell(line)

    def news(self, diagnosis: Diagnosis) -> Iterator[str]:
        """Yield a line for each root cause that is well founded and was not told yet."""
        for hypothesis in diagnosis.root_causes:
            if hypothesis.cause not in self._told and is_well_founded(hypothesis):
                self._told.add(hypothesis.cause)
                yield line_of(hypothesis)


def is_well_founded(hypothesis: Hypothesis) -> bool:
    """Tell whether a finding speaks strongly for a cause, or shows it."""
    return any(f.shows == hypothesis.cause or f.strength == "strong" for f in hypothesis.findings)


def line_of(hypothesis: Hypothesis) -> str:
    """Return a root cause in one line: what, how sure, where."""
    about = f"{hypothesis.cause}, confidence {hypothesis.confidence:.2f}"
    place = hypothesis.location
    if place is not None:
        about += f", {shown(Path(place.file)) if Path(place.file).is_absolute() else place.file}"
        about += f":{place.line}"
    claim = hypothesis.findings[0].claim if hypothesis.findings else ""
    said = hypothesis.issue or claim or hypothesis.cause
    return f"alert: {said.rstrip('.')} ({about})"


def _sizes(folder: Path) -> dict[str, int]:
    try:
        with os.scandir(folder) as entries:
            sizes = {e.name: e.stat().st_size for e in entries if e.is_file()}
    except OSError:
        return {}
    return {name: size for name, size in sizes.items() if size}


def _work_s() -> float:
    """Return the time on a processor of this thread and of the looks that have ended.

    A look gives way to the training, so on a busy machine the clock on the wall says little of it.
    """
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.thread_time() + ended.ru_utime + ended.ru_stime
