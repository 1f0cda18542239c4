"""The stretches that a curve is made of: levels with a slope, change points, bursts, periods.

A change point is a step that neither the slopes on both sides nor the noise between neighbouring
points explain.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from traindx.analysis.curves import (
    bucket_edges,
    bucket_medians,
    noise,
    rank_z,
    running_median,
    spread,
)
from traindx.model.run import Floats

BUCKETS = 240  # levels, so that a million points cost as much as some hundreds
WINDOW = 30  # a step is judged between a thirtieth of the run before it and one after it …
SHORTEST = 4  # … or as many levels, at least
SURE = 6.0  # noise levels; the largest of a hundred steps of noise between medians has three
JUDGED = 60  # points, of which a step is judged
SURELY = 4.0  # rank sum: the points after a step lie above those before it
AT_START = 0.65  # of the first value: where a curve begins anew
UP = 1.3  # times the level before: a step that matters
BURST = 6.0  # scatters above the running median that a burst reaches
PERIODS = 3  # repeats of a pattern, below which it is none
NEAREST = 0.85  # of the best likeness: a multiple of a period is as good as the period
ALIKE = 0.5  # autocorrelation of a pattern at its period


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch between two change points: places as shares of the run, level, change within."""

    start: float
    end: float
    level: float
    slope: float  # change from its start to its end, in units of the metric


@dataclass(frozen=True, slots=True)
class Burst:
    """A stretch far above its surroundings: places as shares of the run, height, what is left."""

    start: float
    end: float
    height: float  # its top over the level before
    left: float  # of its height, once it is over; nothing where it recovers


def segments(values: Floats) -> list[Segment]:
    """Return the stretches of a curve, first to last."""
    levels = bucket_medians(values, bucket_edges(len(values), BUCKETS))
    return [_segment(levels, a, b) for a, b in pairwise([0, *_steps(levels), len(levels)])]


def _steps(levels: Floats) -> list[int]:
    """Return where levels step up or down at once, by more than their slopes and noise explain."""
    width = max(SHORTEST, len(levels) // WINDOW)
    if len(levels) < 2 * width:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(levels, width)
    half = width // 2
    middle = np.median(windows, axis=1)
    slope = np.median(windows[:, -half:], axis=1) - np.median(windows[:, :half], axis=1)
    drift = (slope[:-width] + slope[width:]) / 2 * width / (width - half)
    step = np.abs(middle[width:] - middle[:-width] - drift)
    scatter = max(noise(levels), 1e-9 * float(np.abs(levels).max() or 1.0))
    height = np.where(step > np.abs(drift), step / scatter, 0.0)
    found: list[int] = []
    for at in np.argsort(-height):
        if height[at] < SURE:
            break
        if all(abs(int(at) + width - other) >= width for other in found):
            found.append(int(at) + width)
    return sorted(found)


def _segment(levels: Floats, first: int, last: int) -> Segment:
    part = levels[first:last]
    third = max(1, len(part) // 3)
    slope = float(np.median(part[-third:]) - np.median(part[:third])) * 1.5
    count = len(levels)
    return Segment(first / count, last / count, float(np.median(part)), slope)


def lasting_step(values: Floats) -> tuple[float, Segment] | None:
    """Return the level before a step up that a curve never makes good, and the stretch after it.

    A curve that repeats itself, as with restarts of a schedule, has none; a step to where the curve
    began is another run in the same log.
    """
    found = segments(values)
    if len(found) < 2 or len(values) < JUDGED or period(values):
        return None
    for after in found[1:]:
        at = int(after.start * len(values))
        part = max(SHORTEST, len(values) // WINDOW)
        low = float(np.median(values[max(0, at - part) : at]))
        lowest = min(s.level for s in found if s.start >= after.start)
        is_up = 0.0 < UP * low < lowest
        is_sure = rank_z(values[max(0, at - part) : at], values[at : at + part]) > SURELY
        near = values[at : at + 3 * (1 + len(values) // BUCKETS)]  # a level places it so closely
        if is_up and is_sure and float(near.max()) < AT_START * float(values[0]):
            return low, after
    return None


def bursts(values: Floats) -> list[Burst]:
    """Return the stretches in which a curve stands far above its own level."""
    if len(values) < 3 * SHORTEST:
        return []
    edges = bucket_edges(len(values), BUCKETS)
    tops = np.array([values[a:b].max() for a, b in pairwise(edges)])
    level = _trend(bucket_medians(values, edges), 2 * (len(tops) // 40) + 1)
    residual = tops - level
    high = residual > np.median(residual) + BURST * max(spread(residual), 1e-12)
    starts = np.flatnonzero(high & ~np.append(False, high[:-1]))
    ends = np.flatnonzero(high & ~np.append(high[1:], False))
    return [_burst(tops, level, int(a), int(b)) for a, b in zip(starts, ends, strict=True)]


def _trend(levels: Floats, window: int) -> Floats:
    """Return the running median of levels that go on beyond both ends as they began and ended."""
    half = window // 2
    before = 2 * levels[0] - levels[1 : half + 1][::-1]
    after = 2 * levels[-1] - levels[-half - 1 : -1][::-1]
    whole = np.concatenate([before, levels, after])
    return running_median(whole, window)[len(before) : len(before) + len(levels)]


def _burst(tops: Floats, level: Floats, first: int, last: int) -> Burst:
    before = float(np.median(level[max(0, first - SHORTEST) : first])) if first else float(level[0])
    after = (
        float(np.median(level[last + 1 : last + 1 + SHORTEST]))
        if last + 1 < len(level)
        else (float(tops[last]))
    )
    height = float(tops[first : last + 1].max()) - before
    left = float(np.clip((after - before) / max(height, 1e-300), 0.0, 1.0))
    return Burst(first / len(tops), (last + 1) / len(tops), height, left)


def period(values: Floats) -> float:
    """Return the share of the run after which a curve repeats itself; 0 where it does not."""
    levels = bucket_medians(values, bucket_edges(len(values), BUCKETS))
    rest = levels - running_median(levels, 2 * (len(levels) // 6) + 1)
    if len(rest) < 4 * PERIODS or float(rest.std()) == 0.0:
        return 0.0
    rest = rest - rest.mean()
    full = np.correlate(rest, rest, "full")[len(rest) - 1 :]
    likeness = full / full[0] * len(rest) / np.arange(len(rest), 0, -1)
    below = np.flatnonzero(likeness < 0.0)
    if not len(below):
        return 0.0
    longest = len(rest) // PERIODS
    within = likeness[int(below[0]) : longest + 1]
    if not len(within) or float(within.max()) < ALIKE:
        return 0.0
    # of all its multiples the shortest one
    near = np.flatnonzero(within >= NEAREST * float(within.max()))
    first = int(near[0])
    while first + 1 < len(within) and within[first + 1] > within[first]:
        first += 1
    return (int(below[0]) + first) / len(rest)
