"""Reruns side by side, as many as there are cores for, within the time that is left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol

from traindx.experiments.changes import AS_IT_IS, Change, Intervention, Limits, Rerun
from traindx.experiments.probes.measurements import Measurement, measured

YARDSTICK = Intervention("yardstick")
CENSUS = Intervention("program-census", {"keeps_data": True})
MARGIN_S = 1.0  # between the last rerun and the end, to end it and to say what came of it
SLOWER = 2.5  # times what is expected of a rerun, and …
AT_LEAST_S = 15.0  # … so much more, before it is given up
LOOK_S = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One rerun to make: a change, a seed, when it stops, and how long it takes as expected."""

    change: Change
    seed: int
    steps: int | None = None
    expected_s: float = 0.0
    key: str = ""


class Reruns(Protocol):
    """What reruns a command: a workshop."""

    def rerun(
        self, change: Change, seed: int, limits: Limits, hang_after_s: float | None = None
    ) -> Rerun:
        """Rerun the command with a change."""

    def abandon(self) -> None:
        """End all reruns that go on."""


def cores_for(environ: Mapping[str, str]) -> int:
    """Return how many reruns fit beside each other: each takes the threads that the user gives."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    threads = environ.get("OMP_NUM_THREADS", "")
    return max(1, cores // int(threads)) if threads.isdigit() and int(threads) else 1


class RerunPool:
    """Makes reruns until a deadline."""

    def __init__(
        self,
        workshop: Reruns,
        max_time_s: float,
        *,
        workers: int = 1,
        pace: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._workshop = workshop
        self._deadline = clock() + max_time_s
        self._clock = clock
        self._tell = tell
        self.workers = workers
        self.done = 0
        self.pace = pace  # how long reruns take against what was expected of them

    @property
    def left_s(self) -> float:
        return self._deadline - MARGIN_S - self._clock()

    def first(self, time_s: float, steps: int | None) -> Measurement:
        """Run the command as it is, and take the census."""
        self._tell("as it is, seed 0")
        change = Change(AS_IT_IS.says, (CENSUS, YARDSTICK))
        limits = Limits(min(time_s, self.left_s), steps)
        return measured(self._workshop.rerun(change, 0, limits))

    def see(self, jobs: Sequence[Job], keep_s: float = 0.0) -> dict[Job, Measurement]:
        """Return what came of the jobs; those that there was no time for are missing.

        `keep_s` is how much time, as expected, is kept for what comes after them.
        """
        found: dict[Job, Measurement] = {}
        waiting = list(jobs)
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="traindx-probe")
        running: dict[Future[Measurement], Job] = {}
        try:
            while waiting or running:
                while waiting and len(running) < self.workers:
                    job = waiting.pop(0)
                    if self.has_time_for(job.expected_s + keep_s / self.workers):
                        self._tell(f"{job.change.says}, seed {job.seed}")
                        running[pool.submit(self._make, job)] = job
                ready, _ = wait(running, LOOK_S, FIRST_COMPLETED)
                for future in ready:
                    job = running.pop(future)
                    found[job] = self._taken(future, job)
        except BaseException:
            self._workshop.abandon()
            raise
        finally:
            pool.shutdown(wait=True)
        return found

    def has_time_for(self, expected_s: float) -> bool:
        """Tell whether a rerun of that length would end in time, going by those before it."""
        return self.left_s > expected_s * self.pace

    def _taken(self, future: Future[Measurement], job: Job) -> Measurement:
        made = future.result()
        self.done += 1
        if job.expected_s > 0 and not made.has_failed:
            pace = made.rerun.duration_s / job.expected_s
            self.pace = 0.6 * self.pace + 0.4 * min(max(pace, 0.1), 4.0)
        return made

    def _make(self, job: Job) -> Measurement:
        patient = max(SLOWER * job.expected_s * self.pace, job.expected_s + AT_LEAST_S)
        limits = Limits(max(0.1, min(self.left_s, patient)), job.steps, is_recorded=False)
        change = Change(job.change.says, (*job.change.interventions, YARDSTICK), job.change.patch)
        return measured(self._workshop.rerun(change, job.seed, limits))
