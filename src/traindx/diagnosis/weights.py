"""How far findings move belief in a cause, and how far belief may go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp

from traindx.model.findings import (
    Finding,
    Strength,
)


@dataclass(frozen=True, slots=True)
class Weights:
    """How far findings move belief, in log-odds, and how far belief may go."""

    prior: float
    weak: float
    moderate: float
    strong: float
    direct: float
    something_else: float  # the odds that a symptom has a cause nobody suggested
    highest: float  # short of an experiment
    highest_fitting: float  # without direct evidence
    highest_without_symptom: float  # a risk that hurts nobody yet is a remark

    def of(self, strength: Strength) -> float:
        """Return how far a finding of that strength moves belief."""
        return float(getattr(self, strength.value))


# One moderate finding leaves a cause open among its rivals, one strong or two moderate findings
# make it fit, and only direct evidence lifts it over 0.9. Fitted with `bench.accuracy.fitting` on
# incidents that no rule had been made for, and rounded.
WEIGHTS = Weights(
    prior=-1.9,
    weak=0.7,
    moderate=1.6,
    strong=3.3,
    direct=4.6,
    something_else=1.0,
    highest=0.97,
    highest_fitting=0.85,
    highest_without_symptom=0.65,
)


def confidences(findings: Sequence[Finding], weights: Weights = WEIGHTS) -> dict[str, float]:
    """Return the confidence in every cause that the findings suggest or show."""
    suggested = {c for f in findings for c in (*f.suggests, *([f.shows] if f.shows else []))}
    odds = {c: exp(log_odds(c, findings, weights)) for c in suggested}
    shown = {f.shows for f in findings if f.shows}
    return {c: confidence_of(c, findings, odds, weights, is_shown=c in shown) for c in suggested}


def log_odds(cause: str, findings: Iterable[Finding], weights: Weights = WEIGHTS) -> float:
    """Return how far the findings speak for a cause on its own."""
    total = weights.prior
    for finding in findings:
        if finding.shows == cause:
            total += weights.direct
        elif cause in finding.suggests:
            total += weights.of(finding.suggests[cause])
        if cause in finding.against:
            total -= weights.of(finding.against[cause])
    return total


def confidence_of(
    cause: str,
    findings: Iterable[Finding],
    odds: Mapping[str, float],
    weights: Weights = WEIGHTS,
    *,
    is_shown: bool,
) -> float:
    """Return the confidence in a cause among its rivals for each symptom."""
    own = odds[cause]
    alone = own / (own + weights.something_else)
    if is_shown:
        return min(alone, weights.highest)
    shares = [
        own / (weights.something_else + sum(odds[c] for c in finding.suggests))
        for finding in findings
        if finding.is_symptom and cause in finding.suggests
    ]
    if not shares:
        return min(alone, weights.highest_without_symptom)
    return min(max(shares), weights.highest_fitting)
