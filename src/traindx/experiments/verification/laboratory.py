"""Reruns within the time that is left, each of them made and looked at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from traindx.experiments.changes import Change, Limits, Rerun
from traindx.experiments.verification.observed_rerun import Observation, observe

FIRST_SHARE = 0.3  # of the time, for the first rerun: how long one takes is not known yet
SHARE = 0.25  # of the time that is left, which any later one may take
SLOWER = 3.0  # times the duration of the first; a change may slow a program down
AT_LEAST_S = 30.0  # more than the first took
EXPECTED = 1.1  # times the duration of the first: less time than that is not worth a start
SEED_SHARE = 0.5  # of the time that is left, for further seeds; the rest is for other causes
CHEAP_S, MODERATE_S = 10.0, 60.0  # up to here three seeds, two seeds

Key = tuple[object, ...]


class NoTimeLeft(Exception):
    """There is no time left for another rerun."""


class Bench(Protocol):
    """What reruns a command: a workshop."""

    def rerun(
        self, change: Change, seed: int, limits: Limits, hang_after_s: float | None = None
    ) -> Rerun:
        """Rerun the command with a change."""


class Laboratory:
    """Makes reruns until a deadline, and remembers them."""

    def __init__(
        self,
        workshop: Bench,
        max_time_s: float,
        *,
        hang_after_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._workshop = workshop
        self._max_time_s = max_time_s
        self._deadline = clock() + max_time_s
        self._hang_after_s = hang_after_s
        self._clock = clock
        self._tell = tell
        self._seen: dict[Key, Observation] = {}
        self.usual_s: float | None = None

    @property
    def left_s(self) -> float:
        return self._deadline - self._clock()

    def see(self, change: Change, seed: int, steps: int | None) -> Observation:
        """Return what a rerun with a change shows; raise NoTimeLeft if there is none for it."""
        key = _key(change, seed, steps)
        if key not in self._seen:
            self._tell(f"{change.says}, seed {seed}")
            self._seen[key] = self._make(change, seed, steps)
        return self._seen[key]

    def _make(self, change: Change, seed: int, steps: int | None) -> Observation:
        left = self.left_s
        if left <= 0 or (self.usual_s is not None and left < EXPECTED * self.usual_s):
            raise NoTimeLeft
        time_s = FIRST_SHARE * left
        if self.usual_s is not None:
            # the first may have failed at once where a changed one goes on
            usual = max(SLOWER * self.usual_s, self.usual_s + AT_LEAST_S, SHARE * left)
            time_s = min(left, usual)
        limits = Limits(time_s, steps)
        seen = observe(self._workshop.rerun(change, seed, limits, self._hang_after_s))
        if self.usual_s is None:
            self.usual_s = seen.rerun.duration_s
        return seen

    def affordable_seeds(self) -> int:
        """Return how many seeds a confirmation is repeated with."""
        usual = self.usual_s if self.usual_s is not None else MODERATE_S
        wanted = 3 if usual <= CHEAP_S else 2 if usual <= MODERATE_S else 1
        pairs = SEED_SHARE * self.left_s / (2 * EXPECTED * max(usual, 1e-9))
        return min(wanted, 1 + int(pairs))

    @property
    def enough_s(self) -> float:
        """Return how much time in all would be enough for one more test, going by the first."""
        asked = self._max_time_s
        usual = self.usual_s if self.usual_s is not None else FIRST_SHARE * asked
        return max(2 * asked, asked - max(0.0, self.left_s) + 3 * EXPECTED * usual)


def _key(change: Change, seed: int, steps: int | None) -> Key:
    made = tuple((i.name, tuple(sorted(i.values.items()))) for i in change.interventions)
    return made, change.patch, seed, steps
