"""The pattern that a curve repeats within its epochs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx.analysis.curves import running_median
from traindx.model.findings import Evidence, cite_setting
from traindx.model.run import Floats, Run, Series

EPOCHS = 3
POINTS = 10  # per epoch, to have a pattern at all
FALLS = 0.35  # of all that it moves within an epoch goes up, at most


@dataclass(frozen=True, slots=True)
class EpochPattern:
    """What the epochs of a curve have in common, each freed of its own level.

    `likeness` is the mean correlation between two epochs, `persistence` that of the mean epoch with
    itself a point later: single batches in a fixed order repeat too, and have none.
    """

    epochs: int
    likeness: float
    swing: float
    noise: float
    persistence: float
    only_falls: bool  # as a running average that starts anew with each epoch


def epoch_pattern(series: Series) -> EpochPattern | None:
    """Return what the epochs of a curve have in common; None where there are too few."""
    rows, raw = _rows(series, smoothed=3), _rows(series, smoothed=1)
    if rows is None or raw is None:
        return None
    mean = rows.mean(axis=0)
    return EpochPattern(
        epochs=len(rows),
        likeness=_likeness(rows),
        swing=float(np.ptp(mean)),
        noise=float(np.median(np.std(rows - mean, axis=0))),
        persistence=_persistence(raw.mean(axis=0)),
        only_falls=_only_falls(mean),
    )


def _rows(series: Series, *, smoothed: int) -> Floats | None:
    """One row per epoch, each drawn to the same number of points and freed of its own level."""
    whole = np.floor(series.epochs)
    rows = [series.values[whole == e] for e in np.unique(whole)]
    longest = max(map(len, rows), default=0)
    rows = [r for r in rows if len(r) >= max(POINTS, 0.8 * longest)]
    if len(rows) < EPOCHS:
        return None
    grid = np.linspace(0.0, 1.0, min(100, *map(len, rows)))
    # the first epoch learns too much to compare; the level of each is not its pattern
    drawn = [
        np.interp(grid, np.linspace(0.0, 1.0, len(r)), running_median(r, smoothed))
        for r in rows[1:]
    ]
    return np.array([d - d.mean() for d in drawn])


def _likeness(rows: Floats) -> float:
    if len(rows) < EPOCHS - 1 or not bool(np.all(rows.std(axis=1) > 0)):
        return 0.0
    together = np.atleast_2d(np.corrcoef(rows))
    return float(np.mean(together[np.triu_indices(len(rows), 1)]))


def _persistence(mean: Floats) -> float:
    time = np.linspace(-1.0, 1.0, len(mean))
    mean = mean - time * float((time * mean).sum() / (time**2).sum())  # it learns meanwhile
    return float((mean[1:] * mean[:-1]).mean()) / max(float((mean**2).mean()), 1e-300)


def _only_falls(mean: Floats) -> bool:
    moves = np.diff(running_median(mean, 5))
    return float(np.clip(moves, 0, None).sum()) < FALLS * float(np.abs(moves).sum())


def cite_unshuffled(run: Run) -> tuple[Evidence, ...]:
    """Cite the setting that turns shuffling off."""
    setting = run.config.find("shuffle", "shuffle_train", "train_shuffle")
    if setting is not None and str(setting.value).lower() in {"false", "0", "no"}:
        return (cite_setting(setting),)
    return ()
