"""A held-out loss beside that of training: the figures by which overfitting is told.

The figures are ratios and shares. What they weigh was fitted on labelled runs of strangers, by
`python -m bench.curve_weights`, which also says how well they do on repositories left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import exp, log

import numpy as np

from traindx.analysis.courses import fitted_weights
from traindx.analysis.courses.course import MetricCourse, course_of
from traindx.analysis.courses.joint import moments
from traindx.model.metric_names import HIGHER_IS_BETTER, kind_of
from traindx.model.run import Run, Series

FEWEST = 4  # evaluations
BELOW = -0.7  # logarithm: a held-out loss of half that of training, or less
ANEW, NEAR = 5.0, 0.35  # times the point before, and of the first value: a run starts again
LAST = 8  # the last eighth of the evaluations
LOSSES = ("loss", "perplexity", "mse", "rmse", "mae")  # in order of preference
SCORED = (HIGHER_IS_BETTER | {"wer", "cer"}) - {"precision", "recall", "reward"}
MOST = 0.7  # logarithm of a ratio: a loss ten times its best says no more than one of twice


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A held-out loss and that of training, each with its course, and what the scores do."""

    val: Series
    train: Series
    val_course: MetricCourse
    train_course: MetricCourse
    score_loss: float  # of its best that the best-kept score has lost by the end

    def figures(self) -> Mapping[str, float]:
        """Return what speaks for or against overfitting, each without a unit."""
        val, train = self.val_course, self.train_course
        rise = min(MOST, max(0.0, _ratio(val.end, val.best))) * self.stays_up
        falls = min(MOST, max(0.0, _ratio(train.level_at(val.best_at), train.end)))
        return {
            "parts": min(rise, falls),
            "lost": min(1.0, val.lost_share) * rise,
            "sure": min(3.0, log(1.0 + max(0.0, val.sure_regret))) * min(rise, falls),
            "steady": max(0.0, val.rises_after_best) * min(rise, falls),
            "after": (1.0 - val.best_at) * min(rise, falls),
            "gap": min(1.0, max(0.0, _ratio(val.end, train.end))),
            "score_loss": self.score_loss,
        }

    def probability(self) -> float:
        """Return how likely readers of such curves say that the model overfits."""
        if _ratio(self.val_course.end, self.train_course.end) < BELOW:
            return 0.0  # who overfits does better in training
        table = fitted_weights.OVERFITTING
        total = table["constant"]
        total += sum(table[name] * value for name, value in self.figures().items())
        return 1.0 / (1.0 + exp(-total))

    @property
    def stays_up(self) -> float:
        """The share of the last evaluations that are nearer to the end than to the best level."""
        last = self.val.values[-max(2, len(self.val) // LAST) :]
        return float(np.mean(last > (self.val_course.best + self.val_course.end) / 2))

    @property
    def turn(self) -> int:
        """The evaluation nearest to the best level of the held-out loss."""
        values = self.val.values
        middle = self.val_course.best_at * len(values)
        reach = max(1.0, len(values) / len(self.val_course.levels))
        first = int(max(0, middle - reach))
        return first + int(np.argmin(values[first : int(middle + reach) + 1]))


def _ratio(high: float, low: float) -> float:
    """Return the logarithm of a ratio of two levels; 0 where one of them is not positive."""
    if high <= 0.0 or low <= 0.0:
        return 0.0
    return log(high / low)


def pairs_of(run: Run) -> Iterator[Pair]:
    """Yield every held-out loss that training has a counterpart to."""
    objective = run.objective()
    if objective is None:
        return
    for name in _held_out_losses(run):
        val = run.get(name)
        train = run.get(name.replace("/val", "/train", 1)) or objective
        if val is None or min(len(val.finite()), len(train.finite())) < FEWEST:
            continue
        yield _pair(run, *_last_start(val.finite(), train.finite()))


def _last_start(val: Series, train: Series) -> tuple[Series, Series]:
    """Return the last of several runs that one log holds: both losses are back where they began."""
    if len(val) != len(train):
        return val, train
    again = [
        at
        for at in range(FEWEST, len(train) - FEWEST + 1)
        if train.values[at] > ANEW * train.values[at - 1]
        and all(_is_near(s.values[at], s.values[0]) for s in (val, train))
    ]
    return (
        (val.take(slice(again[-1], None)), train.take(slice(again[-1], None)))
        if again
        else (val, train)
    )


def _is_near(value: float, other: float) -> bool:
    return abs(value - other) < NEAR * abs(other)


def _held_out_losses(run: Run) -> list[str]:
    """Return the names of the held-out losses: of the whole where it is there, else of its parts.

    A second series under the same name, `loss/val@2`, is another average of the same.
    """
    kind = next((k for k in LOSSES if run.has(f"{k}/val*")), "")
    names = [n for n in run.series if kind and kind_of(n) == kind and n.startswith(f"{kind}/val")]
    return [n for n in names if n.count("/") == 1] or names


def _pair(run: Run, val: Series, train: Series) -> Pair:
    course, other = course_of(val.values), course_of(_shared(train, val).values)
    losses = []
    for score in _scores(run):
        level = course_of(score.values, higher_is_better=kind_of(score.name) in HIGHER_IS_BETTER)
        losses.append((level.end - level.best) / max(abs(level.best), 1e-12))
    return Pair(val, train, course, other, float(np.clip(min(losses, default=0.0), 0.0, 0.5)))


def _shared(train: Series, val: Series) -> Series:
    """Return the part of a training loss that lies in the time of the evaluations."""
    same = train.axis == val.axis
    when, other = (train.steps, val.steps) if same else (moments(train), moments(val))
    if len(when) != len(train) or len(other) != len(val) or not (same or train.epochs.size):
        return train
    inside = when <= max(float(when[0]), float(other[-1]))
    return train.take(inside) if int(inside.sum()) >= FEWEST else train


def _scores(run: Run) -> Iterator[Series]:
    for name in run.series:
        kind = kind_of(name)
        series = run.get(name) if kind in SCORED and name.startswith(f"{kind}/val") else None
        if series is not None and len(series.finite()) >= FEWEST:
            yield series.finite()
