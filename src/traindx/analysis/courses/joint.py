"""How two metrics of one run move together: aligned by when they were logged."""

from __future__ import annotations

import numpy as np

from traindx.analysis.curves import running_median
from traindx.model.run import Floats, Series

GRID = 40  # moments at which two courses are compared
FEWEST = 4  # points that both must have


def moments(series: Series) -> Floats:
    """Return when the points were logged, in epochs where these are known."""
    has_epochs = series.axis != "epoch" and len(series.epochs) == len(series)
    return series.epochs if has_epochs else series.steps


def together(first: Series, second: Series) -> tuple[Floats, Floats] | None:
    """Return the values of two series at the same moments of the time that they share."""
    a, b = first.finite(), second.finite()
    if min(len(a), len(b)) < FEWEST:
        return None
    if a.axis == b.axis:
        when, other = a.steps, b.steps
    elif len(moments(a)) == len(a) and len(moments(b)) == len(b):
        when, other = moments(a), moments(b)
    else:
        when, other = np.linspace(0, 1, len(a)), np.linspace(0, 1, len(b))
    low, high = max(when[0], other[0]), min(when[-1], other[-1])
    if not high > low or bool(np.any(np.diff(when) < 0)) or bool(np.any(np.diff(other) < 0)):
        return None
    grid = np.linspace(low, high, int(min(GRID, len(a), len(b))))
    return _at(grid, when, a.values), _at(grid, other, b.values)


def _at(grid: Floats, when: Floats, values: Floats) -> Floats:
    smooth = running_median(values, 2 * (len(values) // (2 * GRID)) + 1)
    return np.interp(grid, when, smooth)


def likeness(first: Floats, second: Floats) -> float:
    """Return the rank correlation of two courses, from -1 to 1; 0 where one stands still."""
    ranks = [np.argsort(np.argsort(v)).astype(np.float64) for v in (first, second)]
    if any(float(np.ptp(v)) == 0.0 for v in (first, second)):
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def are_same(first: Series, second: Series, points: int) -> bool:
    """Tell whether two series hold the same numbers, to the last digit, and not all of them one."""
    a, b = first.finite().values, second.finite().values
    is_long = len(a) == len(b) >= points
    return is_long and bool(np.array_equal(a, b)) and len(np.unique(a)) >= min(points, 5)
