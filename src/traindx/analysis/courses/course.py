"""The course of one metric: its levels, how far its end is from its best, how it moves.

Everything is a share, a ratio or a count of noise levels, so that the scale of the metric, the
spacing of its points and their number do not matter. Better is lower inside a course; whoever
describes an accuracy says so, and reads the levels through `told`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx.analysis.curves import (
    bucket_edges,
    bucket_medians,
    noise,
    running_median,
    spread,
    wander,
)
from traindx.model.run import Floats

BUCKETS = 60  # levels of a course: enough to place a turn, few enough to hold their own noise
SMOOTHED_FROM = 7  # levels, from which on one of them may be an outlier
END = 8  # the end is the last eighth of the levels, the start the first twentieth
START = 20
SHARED = 0.5  # of the points at one value: the metric counts, and does not measure
TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class MetricCourse:
    """Levels of a metric over its run, lower is better; `sign` leads back to the metric."""

    levels: Floats
    noise: float  # of one level
    shake: float  # of one point
    sign: float

    @property
    def start(self) -> float:
        return float(np.median(self.levels[: max(1, len(self.levels) // START)]))

    @property
    def end(self) -> float:
        return float(np.median(self.levels[-max(1, len(self.levels) // END) :]))

    @property
    def best_level(self) -> int:
        return int(np.argmin(self.levels))

    @property
    def best(self) -> float:
        return float(self.levels[self.best_level])

    @property
    def worst(self) -> float:
        return float(self.levels.max())

    @property
    def best_at(self) -> float:
        """Where the best level stands, as a share of the run."""
        return (self.best_level + 0.5) / len(self.levels)

    @property
    def size(self) -> float:
        """What changes are measured against: the largest of its first, best and last level."""
        return max(abs(self.start), abs(self.best), abs(self.end), TINY)

    @property
    def gain(self) -> float:
        """By how much of its size the end is better than the start."""
        return (self.start - self.end) / self.size

    @property
    def sure_gain(self) -> float:
        """By how many noise levels the end is better than the start."""
        return (self.start - self.end) / max(self.noise, 1e-9 * self.size)

    @property
    def regret(self) -> float:
        """By how much of its size the end is worse than the best."""
        return (self.end - self.best) / self.size

    @property
    def sure_regret(self) -> float:
        """By how many noise levels the end is worse than the best."""
        return (self.end - self.best) / max(self.noise, 1e-9 * self.size)

    @property
    def lost_share(self) -> float:
        """What part of all that was gained is lost by the end; above one is worse than the start.

        Where nothing was ever gained, whatever is lost is all.
        """
        gained = self.start - self.best
        if gained <= max(self.noise, 1e-9 * self.size):
            return 2.0 if self.end > self.best + self.noise else 0.0
        return float(np.clip((self.end - self.best) / gained, 0.0, 2.0))

    @property
    def rises_after_best(self) -> float:
        """How steadily it worsens after its best: one at every step, zero by chance."""
        return persistence(self.levels[self.best_level :])

    def told(self, level: float) -> float:
        """Return a level as the metric tells it."""
        return self.sign * level

    def level_at(self, share: float) -> float:
        """Return the level at a share of the run, of the three around it."""
        at = min(len(self.levels) - 1, int(share * len(self.levels)))
        return float(np.median(self.levels[max(0, at - 1) : at + 2]))


def course_of(values: Floats, *, higher_is_better: bool = False) -> MetricCourse:
    """Describe finite values, of which there is at least one."""
    sign = -1.0 if higher_is_better else 1.0
    values = sign * values
    medians = bucket_medians(values, bucket_edges(len(values), BUCKETS))
    levels = running_median(medians, 3 if len(medians) >= SMOOTHED_FROM else 1)
    return MetricCourse(levels, max(wander(levels), noise(levels)), noise(values), sign)


def persistence(levels: Floats) -> float:
    """Return how steadily levels rise: the share of pairs that rise, less those that fall."""
    if len(levels) < 3:
        return 0.0
    pairs = np.sign(levels[None, :] - levels[:, None])[np.triu_indices(len(levels), 1)]
    return float(pairs.mean())


def constant_share(values: Floats) -> float:
    """Return the share of the points that have the most frequent value, to the last digit."""
    return float(np.unique(values, return_counts=True)[1].max()) / len(values)


def swing(values: Floats) -> float:
    """Return how far neighbouring points lie apart, as a ratio; one is no swing at all."""
    if len(values) < 3 or float(values.min()) <= 0.0:
        return 1.0
    return float(np.exp(np.median(np.abs(np.diff(np.log(values))))))


def is_counted(values: Floats) -> bool:
    """Tell whether a metric takes few values only, as a share of a handful of examples does."""
    return len(np.unique(values)) <= max(3, len(values) // 8) or constant_share(values) >= SHARED


def change_in_spread(values: Floats) -> float:
    """Return the scatter of the last third over that of the first, each freed of its trend."""
    parts = np.array_split(values, 3)
    first, last = (spread(np.diff(part)) for part in (parts[0], parts[2]))
    return last / max(first, TINY * float(np.abs(values).max() or 1.0))
