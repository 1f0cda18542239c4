"""Pure numerics shared by detectors: how a curve moves, against how much it shakes.

Every judgement is made in units of the run's own noise. Loss curves span decades, so levels are
compared on a scale that is logarithmic above one percent of the starting level and linear below:
a rise from 1e-7 to 1e-5 at the end of a run that began at 1 is no rise at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from traindx.model.run import Floats

MAX_BUCKETS = 800  # enough to place an onset within 0.2 % of a run, cheap enough for any run
STILL_GROWING = 0.5  # of the average pace, in each third; what fills up slows down
_TO_SIGMA = 1.4826  # median absolute deviation to standard deviation
HEIGHT = 12.0  # in units of the spread around the running median; minibatch noise is heavy-tailed
FACTOR = 3.0  # and this many times the level around it
STAGES = 5
LAST_POINTS = 5  # points: what feeds itself shows most at the end
RISES = 0.002  # of the level, from one fifth of the run to the next
IN_ALL = 1.5  # times the first level; the terms of a sum that grow as planned add less
GONE = 0.02  # of its largest value
GONE_FOR = 0.3  # of the run, to the end


def spread(values: Floats) -> float:
    """Return a standard deviation that outliers do not move."""
    if len(values) < 2:
        return 0.0
    return float(_TO_SIGMA * np.median(np.abs(values - np.median(values))))


def noise(values: Floats) -> float:
    """Return the point-to-point noise of a curve, blind to its trend and its outliers."""
    if len(values) < 4:
        return 0.0
    return float(spread(np.diff(values, n=2)) / np.sqrt(6.0))


def wander(values: Floats) -> float:
    """Return the noise of a curve at its worst time scale: averaged logs shake slowly.

    Scales beyond a twentieth of the run are left out: there the trend itself bends.
    """
    worst = 0.0
    lag = 1
    while lag <= max(1, len(values) // 20) and len(values) > 2 * lag + 1:
        bend = values[2 * lag :] - 2.0 * values[lag:-lag] + values[: -2 * lag]
        worst = max(worst, float(spread(bend) / np.sqrt(6.0)))
        lag *= 2
    return worst


def running_median(values: Floats, window: int) -> Floats:
    """Return the median of a centred window around each value; `window` is odd."""
    if window <= 1 or len(values) < 3:
        return values
    window = min(window, len(values) - (len(values) + 1) % 2)
    half = window // 2
    padded = np.concatenate([values[:half][::-1], values, values[-half:][::-1]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, window)
    return np.asarray(np.median(windows, axis=1), dtype=np.float64)


def bucket_edges(count: int, most: int = MAX_BUCKETS) -> NDArray[np.int64]:
    """Return the edges that split `count` points into at most `most` even buckets."""
    return np.unique(np.linspace(0, count, min(count, most) + 1).astype(np.int64))


def bucket_medians(values: Floats, edges: NDArray[np.int64]) -> Floats:
    """Return the median of each bucket."""
    if len(edges) == len(values) + 1:
        return values
    return np.array([np.median(values[a:b]) for a, b in pairwise(edges)])


def since(is_so: NDArray[np.bool_]) -> int:
    """Return the first of the points that are so up to the end; their number if the last is not."""
    others = np.flatnonzero(~is_so)
    return int(others[-1]) + 1 if len(others) else 0


def slope_z(values: Floats) -> float:
    """Return the Mann-Kendall statistic: how surely a curve rises (or, negative, falls)."""
    if len(values) > 200:
        values = bucket_medians(values, bucket_edges(len(values), 200))
    n = len(values)
    if n < 4:
        return 0.0
    signs = np.sign(values[None, :] - values[:, None])[np.triu_indices(n, 1)]
    variance = n * (n - 1) * (2 * n + 5) / 18.0
    return float(signs.sum() / np.sqrt(variance))


def rank_z(first: Floats, second: Floats) -> float:
    """Return the rank-sum statistic: how surely the second sample lies above the first."""
    n, m = len(first), len(second)
    if not n or not m:
        return 0.0
    ordered = np.sort(first)
    below = np.searchsorted(ordered, second, "left") + np.searchsorted(ordered, second, "right")
    u = below.sum() / 2.0
    return float((u - n * m / 2.0) / np.sqrt(n * m * (n + m + 1) / 12.0))


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The course of a loss: levels over buckets of points, and the noise they are judged against.

    `level` is on the mixed scale, `edges` leads from a bucket back to the points. `best` and `peak`
    are buckets; `rise` is how far the end lies above the best, `peak_rise` how far the worst level
    after the best did, `recovered_rise` the largest rise that the run made good by itself.
    """

    values: Floats
    edges: NDArray[np.int64]
    level: Floats
    noise: float
    best: int
    start_level: float
    end_level: float
    recovered_rise: float

    @property
    def rise(self) -> float:
        return self.end_level - float(self.level[self.best])

    @property
    def peak(self) -> int:
        return self.best + int(np.argmax(self.level[self.best :]))

    @property
    def peak_rise(self) -> float:
        return float(self.level[self.peak] - self.level[self.best])

    @property
    def improvement(self) -> float:
        return self.start_level - float(self.level[self.best])

    @property
    def net_improvement(self) -> float:
        return self.start_level - self.end_level

    @property
    def gained(self) -> float:
        """The part of the first level that the loss has lost by its end."""
        return (self.start_value - self.end_value) / (abs(self.start_value) or np.nan)

    def point(self, bucket: int) -> int:
        """Return the first point of a bucket."""
        return int(self.edges[bucket])

    def value_at(self, bucket: int) -> float:
        return float(np.median(self.values[self.edges[bucket] : self.edges[bucket + 1]]))

    @property
    def end_value(self) -> float:
        return float(np.median(self.values[self.edges[-1 - self.tail] :]))

    @property
    def start_value(self) -> float:
        return float(np.median(self.values[: self.edges[self.tail]]))

    @property
    def tail(self) -> int:
        return max(1, len(self.level) // 20)


def curve(values: Floats) -> Curve:
    """Describe the course of a loss; all values must be finite, at least one."""
    edges = bucket_edges(len(values))
    raw = mixed_scale(values)
    medians = bucket_medians(raw, edges)
    window = 2 * (len(medians) // 80) + 1
    level = running_median(medians, window)
    scatter = max(wander(level), 0.5 * noise(medians) / np.sqrt(window))
    span = float(level.max() - level.min())
    tail = max(1, len(level) // 20)
    best = int(np.argmin(level))
    return Curve(
        values=values,
        edges=edges,
        level=level,
        noise=max(scatter, 0.002 * span, 1e-12),
        best=best,
        start_level=float(np.median(level[:tail])),
        end_level=float(np.median(level[-tail:])),
        recovered_rise=_recovered_rise(level, best),
    )


def mixed_scale(values: Floats) -> Floats:
    """Map values to a scale that is logarithmic above 1 % of the starting level, linear below."""
    head = values[: max(1, len(values) // 20)]
    unit = 0.01 * float(np.median(np.abs(head)))
    unit = max(unit, 1e-300 * float(np.max(np.abs(values))))  # beyond, the division overflows
    return np.arcsinh(values / unit) if unit > 0 else values.astype(np.float64)


def _recovered_rise(level: Floats, best: int) -> float:
    """The largest rise before the best level; the first tenth is left out: warm-up is rough."""
    settled = len(level) // 10
    before = level[settled : best + 1]
    if len(before) < 2:
        return 0.0
    return float(np.max(before - np.minimum.accumulate(before)))


@dataclass(frozen=True, slots=True)
class Divergence:
    """A loss that left its best level and did not come back; positions are points, not buckets."""

    best: int
    onset: int
    peak: int
    best_value: float
    end_value: float
    peak_value: float
    in_noise: float
    is_explosive: bool
    is_recovering: bool


SURE_RISE = 6.0  # in units of the noise between levels; the best of 40 noisy levels lies 2.5 below
BEYOND_HISTORY = 1.5  # a rise must exceed what this run has recovered from before by this factor
NOTABLE_RISE = 1.08  # below 8 % even a sure rise is nothing to act on
NOTABLE_SHARE = 0.05  # of what the run had gained until then
EXPLOSIVE = 3.0  # the end this many times above the start as well


def divergence(values: Floats) -> Divergence | None:
    """Find where a loss left its best level for good, judged against the run's own history."""
    if len(values) < 6:
        return _tiny_explosion(values)
    c = curve(values)
    after = len(c.level) - 1 - c.best
    if after < max(3, 0.03 * len(c.level)):
        return None
    best_value, end_value = c.value_at(c.best), c.end_value
    peak_value = c.value_at(c.peak)
    is_explosive = bool(
        end_value > EXPLOSIVE * abs(c.start_value)
        and c.rise > SURE_RISE * c.noise
        and not _is_falling_since_peak(c)
    )
    if not is_explosive and not _is_sure_rise(c, best_value, end_value):
        return None
    onset = _onset(c)
    return Divergence(
        best=c.point(c.best),
        onset=onset,
        peak=c.point(c.peak),
        best_value=best_value,
        end_value=end_value,
        peak_value=peak_value,
        in_noise=float(c.rise / c.noise),
        is_explosive=is_explosive,
        is_recovering=_is_recovering(c),
    )


def _is_sure_rise(c: Curve, best_value: float, end_value: float) -> bool:
    gained = max(c.improvement, 0.0)
    notable = end_value - best_value > (NOTABLE_RISE - 1) * abs(best_value)
    # a noise level estimated from a few points is itself uncertain
    sure = SURE_RISE * (1.0 + 6.0 / max(1, len(c.level) - 2))
    around_best = np.median(c.level[max(0, c.best - 1) : c.best + 2])
    lasting = min(c.rise, float(np.median(c.level[-3:]) - around_best)) / c.noise
    # a blow-up that left a mark counts although the mark alone would be within the wander
    significant = lasting > sure or (c.peak_rise > 2 * sure * c.noise and lasting > 3.0)
    # a short run that climbs at every point since its best: chance does that once in 4! tries
    climbs = c.level[c.best :]
    significant |= len(climbs) > 4 and lasting > 2.5 and bool(np.all(np.diff(climbs) > 0))
    significant &= c.rise > NOTABLE_SHARE * gained
    unheard_of = max(c.rise, c.peak_rise) > BEYOND_HISTORY * c.recovered_rise
    tail = c.level[-max(3, c.tail) :]
    persistent = bool(np.all(tail > c.level[c.best] + 0.5 * c.rise))
    if not (notable and significant and unheard_of and persistent and _is_sure_by_rank(c)):
        return False
    # where nothing was learnt before, only a loss that ends at its worst has diverged
    return c.best > 0.05 * len(c.level) or not _is_falling_since_peak(c)


def _is_sure_by_rank(c: Curve) -> bool:
    """Compare the points after the rise with those around the best; medians alone can be luck."""
    tail = c.values[c.point(len(c.level) - c.tail) :]
    low = c.level <= c.level[c.best] + 0.5 * c.rise
    first, last = c.best, c.best
    while first > max(0, c.best - c.tail) and low[first - 1]:
        first -= 1
    while last < min(len(low) - 1, c.best + c.tail) and low[last + 1]:
        last += 1
    around = c.values[c.point(first) : int(c.edges[last + 1])]
    return len(tail) < 5 or rank_z(around, tail) > 3.0


def _is_falling_since_peak(c: Curve) -> bool:
    rest = c.level[c.peak :]
    return c.peak_rise - c.rise > 3.0 * c.noise and slope_z(rest) < -2.5


def _onset(c: Curve) -> int:
    """The first point after the best from which on the level stays up until the peak."""
    above = c.level[c.best : c.peak + 1] > c.level[c.best] + 3.0 * c.noise
    back_in_noise = np.flatnonzero(~above)
    bucket = c.best + int(back_in_noise[-1]) + 1 if len(back_in_noise) else c.best + 1
    bucket = min(bucket, len(c.level) - 1)
    return _sharpened(c, bucket)


def _sharpened(c: Curve, bucket: int) -> int:
    """Undo the smoothing where the rise is abrupt: the one jump that makes up most of it."""
    window = 2 * (len(c.level) // 80) + 1
    first = c.point(max(bucket - window, 0))
    last = int(c.edges[min(bucket + window + 1, len(c.level))])
    raw = mixed_scale(c.values)[first:last]
    jumps = np.diff(raw)
    if len(jumps) and float(jumps.max()) > 0.5 * c.rise:
        return first + int(np.argmax(jumps)) + 1
    return c.point(bucket)


def _is_recovering(c: Curve) -> bool:
    """Tell whether the run is on its way back, at a pace that would get it there.

    A run that has lost all it ever learnt has not recovered, however fast it falls.
    """
    rest = c.level[c.peak :]
    if len(rest) < 4 or c.end_level > c.start_level or not _is_falling_since_peak(c):
        return False
    last_half = rest[len(rest) // 2 :]
    return float(last_half[0] - c.end_level) > 0.25 * c.rise


def _tiny_explosion(values: Floats) -> Divergence | None:
    """A handful of points can only show the obvious: a steep climb at every one."""
    if len(values) < 3 or not bool(np.all(np.diff(values[-3:]) > 0)):
        return None
    best = int(np.argmin(values))
    if values[-1] < 10 * abs(values[0]) or values[-1] < 10 * abs(values[best]):
        return None
    end = float(values[-1])
    return Divergence(
        best, best + 1, len(values) - 1, float(values[best]), end, end, np.inf, True, False
    )


_REPEATS = 4  # times that a cycle stands in a text: "::::"
_COVERED = 0.6  # of a text, from its end; a prompt may stand before the cycle
_LONGEST_WORDS, _LONGEST_CHARACTERS = 4, 6  # of a cycle; a longer one is a refrain


def grows_steadily(steps: Floats, values: Floats, least: float, share: float) -> bool:
    """Tell whether values rise by enough, and in every third at about the same pace.

    Enough is `least` and that share of their first level. What is given back in between, as a freed
    buffer is, does not count as growth.
    """
    width = 3 if len(values) >= 8 else 1
    low, high = float(np.median(values[:width])), float(np.median(values[-width:]))
    if high - low < max(least, share * low) or steps[-1] <= steps[0]:
        return False
    edges = np.linspace(steps[0], steps[-1], 4)
    levels = np.interp(edges, steps, np.maximum.accumulate(values))
    floor = np.interp(edges, steps, np.minimum.accumulate(values[::-1])[::-1])
    pace = STILL_GROWING * (levels[-1] - levels[0]) / 3
    return bool((np.diff(levels) >= pace).all() and (np.diff(floor) >= pace).all())


def cycle_of(text: str) -> str:
    """Return the token or short cycle that a text ends in, "" if it does not repeat itself."""
    words = text.split()
    found = _cycle(words, _LONGEST_WORDS)
    if found and len(words) > _REPEATS:
        return " ".join(found)
    compact = "".join(words)
    found = _cycle(compact, _LONGEST_CHARACTERS)
    # a number, or a rule under a heading, is no output
    is_text = bool(found) and not compact.isdigit() and not set(compact) <= set("-=_*#. ")
    return "".join(found) if is_text else ""


def _cycle(tokens: Sequence[str], longest: int) -> Sequence[str]:
    count = len(tokens)
    for period in range(1, min(longest, count // _REPEATS) + 1):
        start = count - 1
        while start >= period and tokens[start] == tokens[start - period]:
            start -= 1
        repeated = count - 1 - start + period
        if repeated >= _REPEATS * period and repeated >= _COVERED * count:
            return tokens[count - period :]
    return ""


def isolated_spikes(values: Floats) -> NDArray[np.int64]:
    """Return the single points that stand far above those around them."""
    level = running_median(values, 11)
    residual = values - level
    height = residual / max(spread(residual), 1e-12)
    is_spike = (height > HEIGHT) & (values > FACTOR * np.abs(level))
    is_spike[-3:] = False  # what comes last may be the beginning of the end
    is_spike[: len(values) // 20] = False  # a steep first descent stands above its own median
    return np.flatnonzero(is_spike).astype(np.int64)


def only_rises(values: Floats) -> bool:
    """Tell whether a curve rises from each fifth to the next, and far in all."""
    levels = [float(np.median(part)) for part in np.array_split(values, STAGES)]
    climbs = all(after > before * (1 + RISES) for before, after in pairwise(levels))
    return 0 < levels[0] < float(np.median(values[-LAST_POINTS:])) / IN_ALL and climbs


def gone_since(values: Floats) -> int | None:
    """Return the point from which on values that were there are next to nothing."""
    if not len(values) or values.min() < 0 or values.max() <= 0:
        return None
    start = since(values <= GONE * values.max())
    return start if 0 < start <= (1.0 - GONE_FOR) * len(values) else None


def is_broken_curve(values: Floats) -> bool:
    """Tell whether a curve is NaN somewhere, or diverges."""
    finite = values[np.isfinite(values)]
    return len(finite) < len(values) or divergence(finite) is not None
