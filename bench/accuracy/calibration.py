"""Whether a confidence of 0.8 is right four times in five."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.accuracy.scores import Pair

BINS = 10
CONSIDERED = 0.05  # below this a hypothesis is a mention, not a belief


@dataclass(frozen=True, slots=True)
class Belief:
    """A stated confidence, and whether the claim was right."""

    confidence: float
    is_right: bool


@dataclass(frozen=True, slots=True)
class Bin:
    """The beliefs of one range of confidence."""

    low: float
    high: float
    count: int
    stated: float  # mean confidence
    right: float  # share that was right


def answers(pairs: Iterable[Pair]) -> list[Belief]:
    """Return the belief in the first root cause of each incident: what a user acts on."""
    return [
        Belief(p.judged.roots[0].confidence, _is_right(p, p.judged.roots[0].cause))
        for p in pairs
        if p.judged.roots
    ]


def leading(pairs: Iterable[Pair]) -> list[Belief]:
    """Return the belief in the first hypothesis of each incident, listed or not."""
    return [
        Belief(p.judged.named[0].confidence, _is_right(p, p.judged.named[0].cause))
        for p in pairs
        if p.judged.named and p.judged.named[0].confidence >= CONSIDERED
    ]


def considered(pairs: Iterable[Pair]) -> list[Belief]:
    """Return the belief in every hypothesis that is no consequence of another."""
    return [
        Belief(n.confidence, _is_right(p, n.cause))
        for p in pairs
        for n in p.judged.named
        if n.confidence >= CONSIDERED and (n.is_root or n.confidence < 0.7)
    ]


def _is_right(pair: Pair, cause: str) -> bool:
    """Naming the very fault that was put in is right, though it was too weak to matter."""
    return cause in pair.incident.accepted or cause == pair.incident.injected


def bins(beliefs: Sequence[Belief], count: int = BINS) -> list[Bin]:
    """Return the reliability diagram: equal ranges of confidence, empty ones left out."""
    made = []
    for i in range(count):
        low, high = i / count, (i + 1) / count
        inside = [b for b in beliefs if low <= b.confidence < high or (b.confidence == high == 1)]
        if inside:
            stated = sum(b.confidence for b in inside) / len(inside)
            right = sum(b.is_right for b in inside) / len(inside)
            made.append(Bin(low, high, len(inside), stated, right))
    return made


def expected_error(beliefs: Sequence[Belief]) -> float:
    """Return the expected calibration error: the gap of each bin, weighted by its size."""
    if not beliefs:
        return 0.0
    return sum(b.count * abs(b.stated - b.right) for b in bins(beliefs)) / len(beliefs)


def brier(beliefs: Sequence[Belief]) -> float:
    """Return the mean squared error of the stated confidences."""
    if not beliefs:
        return 0.0
    return sum((b.confidence - b.is_right) ** 2 for b in beliefs) / len(beliefs)
