"""Does a change help? Paired over seeds, beyond the noise of the control, and enough to matter."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traindx.model.probes import Effect

SURE = 2.5  # standard errors of the mean gain; some twenty changes are tried
FEW_SURE = 3.5  # where a single fresh seed speaks
SAMPLED = 1.5  # standard errors of the held-out set itself
PRIOR = 4.0  # how many gains the noise of the other changes stands for
LEAST_SHARE = 0.15  # of what is left to gain
LEAST_SCORE = 0.01  # of a score between 0 and 1
LEAST_SPAN = 0.015  # of the distance from the constant prediction to nothing left
LARGE_SHARE = 0.5  # of what is left: then a smaller part of that distance matters, too …
SMALL_SPAN = 0.005  # … such as this
LOSS_SPAN = 0.05  # where a score stands beside the loss, which alone has moved
SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Comparison:
    """The levels of a metric without and with a change, by seed, and what bounds the metric."""

    before: Mapping[int, float]
    after: Mapping[int, float]
    higher_is_better: bool = False
    constant: float | None = None  # the level of a constant prediction
    count: int = 0  # held-out examples behind each level, for a share
    wiggle: float = 0.0  # from one evaluation to the next

    @property
    def seeds(self) -> list[int]:
        return sorted(self.before.keys() & self.after.keys())

    @property
    def gains(self) -> list[float]:
        """Return the gain of each seed; positive is better, a broken run gains nothing."""
        sign = 1.0 if self.higher_is_better else -1.0
        return [sign * (_clean(self.after[s], sign) - _clean(self.before[s], sign))
                for s in self.seeds]  # fmt: skip

    @property
    def mean_before(self) -> float:
        return float(np.mean([self.before[s] for s in self.seeds])) if self.seeds else math.nan

    @property
    def mean_after(self) -> float:
        return float(np.mean([self.after[s] for s in self.seeds])) if self.seeds else math.nan

    @property
    def gain(self) -> float:
        return float(np.mean(self.gains)) if self.seeds else math.nan


def _clean(value: float, sign: float) -> float:
    """Take a level that is no number for the worst that there is."""
    return value if math.isfinite(value) else -sign * 1e30


def pooled_noise(comparisons: Sequence[Comparison]) -> float:
    """Return the deviation of gains between seeds, over all changes that have several."""
    parts = [float(np.var(c.gains, ddof=1)) for c in comparisons if len(c.seeds) > 1]
    parts = [p for p in parts if math.isfinite(p) and p < 1e20]
    return math.sqrt(float(np.median(parts))) if parts else 0.0


def band(comparison: Comparison, pooled: float) -> float:
    """Return how far noise alone may move the mean gain."""
    gains = comparison.gains
    number = len(gains)
    if not number:
        return math.inf
    own = float(np.var(gains, ddof=1)) if number > 1 else 0.0
    weight = PRIOR if pooled > 0 else 0.0
    degrees = number - 1 + weight
    variance = (own * (number - 1) + pooled**2 * weight) / degrees if degrees else 0.0
    variance = max(variance, 2.0 * comparison.wiggle**2)
    sure = SURE if number > 1 else FEW_SURE
    return math.hypot(sure * math.sqrt(variance / number), SAMPLED * _sampling(comparison))


def _sampling(comparison: Comparison) -> float:
    """Return the standard error that a share has by the size of the held-out set alone."""
    if not comparison.higher_is_better or comparison.count < 1:
        return 0.0
    share = min(max(comparison.mean_before, 0.0), 1.0)
    return math.sqrt(max(share * (1.0 - share), 1.0 / comparison.count) / comparison.count)


def matters(comparison: Comparison, *, beside_score: bool = False) -> bool:
    """Tell whether a gain is worth anybody's while."""
    gain, before = comparison.gain, comparison.mean_before
    if not gain > 0:
        return False
    if not math.isfinite(before):
        return True
    if comparison.higher_is_better:
        top = 1.0 if before <= 1.0 else 100.0
        return gain >= LEAST_SCORE * top and gain >= LEAST_SHARE * max(top - before, SAME)
    share = gain / max(abs(before), SAME)
    span = comparison.constant
    if span is None or not span > 0:
        return share >= LEAST_SHARE
    least = LOSS_SPAN if beside_score else LEAST_SPAN
    is_large = share >= LARGE_SHARE and not beside_score
    return share >= LEAST_SHARE and gain >= (SMALL_SPAN if is_large else least) * span


def effect_of(
    comparison: Comparison, pooled: float, *, beside_score: bool = False, least_seeds: int = 2
) -> tuple[Effect, float]:
    """Return what a change does, and the noise that it was held against."""
    noise = band(comparison, pooled)
    number = len(comparison.seeds)
    if not number:
        return Effect.OPEN, math.nan
    gains = comparison.gains
    if number < least_seeds and noise <= 0:
        return Effect.OPEN if is_promising(comparison) else Effect.NONE, math.nan
    if max(gains) < 0 and -comparison.gain > noise:
        return Effect.HURTS, noise
    if (
        min(gains) > 0
        and comparison.gain > noise
        and matters(comparison, beside_score=beside_score)
    ):
        return (Effect.HELPS if number >= least_seeds else Effect.OPEN), noise
    return Effect.NONE, noise


def is_promising(comparison: Comparison) -> bool:
    """Tell whether a first look is worth a second one."""
    gain, before = comparison.gain, comparison.mean_before
    if not gain > 0:
        return False
    if comparison.higher_is_better:
        top = 1.0 if before <= 1.0 else 100.0
        return gain >= 0.5 * LEAST_SCORE * top
    return not math.isfinite(before) or gain >= 0.5 * LEAST_SHARE * abs(before)


def merit(comparison: Comparison) -> float:
    """Return a gain as a share of what is left to gain, to rank changes by."""
    before = comparison.mean_before
    if not comparison.seeds or not math.isfinite(comparison.gain):
        return -math.inf
    left = (1.0 if before <= 1.0 else 100.0) - before if comparison.higher_is_better else before
    return comparison.gain / max(abs(left), SAME)
