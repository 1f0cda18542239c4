"""The logged times of a step and its parts."""

import re

import numpy as np

from traindx.model.run import Run, Series

ENOUGH = 10  # points


def bare_name(series: Series) -> str:
    """Return the name of a time as it was logged."""
    return series.name.removeprefix("time/")


def picked_time(run: Run, pattern: re.Pattern[str]) -> Series | None:
    """Return the first time whose name fits and that has enough points."""
    for name, series in run.series.items():
        is_time = name.startswith("time/") and pattern.search(name.removeprefix("time/"))
        if is_time and "val" not in name and len(series.finite()) >= ENOUGH:
            return series.finite()
    return None


def usual_time(series: Series) -> float:
    """Return the median of a time, the first batches left out."""
    values = series.values[len(series) // 10 :]  # the first batches start the workers
    return float(np.median(values))
