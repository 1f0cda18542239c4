"""Counts over judged incidents: right, in the first three, at the right line, false alarms."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import PurePath

from bench.accuracy.incidents import HEALTHY, Incident
from bench.accuracy.judging import Judged

NEAR = 1  # lines; a statement may begin a line above the one that was changed


@dataclass(frozen=True, slots=True)
class Pair:
    """The truth about an incident and what was said of it."""

    incident: Incident
    judged: Judged

    @property
    def is_first(self) -> bool:
        """The cause that stands first is right."""
        named = self.judged.named[:1]
        return bool(named) and named[0].cause in self.incident.accepted

    @property
    def is_in_three(self) -> bool:
        return any(n.cause in self.incident.accepted for n in self.judged.named[:3])

    @property
    def is_listed_first(self) -> bool:
        """The first listed root cause is right: what a user reads as the answer."""
        roots = self.judged.roots[:1]
        return bool(roots) and roots[0].cause in self.incident.accepted

    @property
    def is_wrong(self) -> bool:
        """Something is listed, and nothing that is listed is right."""
        roots = self.judged.roots
        return bool(roots) and not any(r.cause in self.incident.accepted for r in roots)

    @property
    def is_abstention(self) -> bool:
        return not self.judged.roots and self.judged.status != "no_problem_found"

    @property
    def is_overlooked(self) -> bool:
        return not self.judged.roots and self.judged.status == "no_problem_found"

    @property
    def is_false_alarm(self) -> bool:
        """A healthy run is accused; of a weak fault, naming that very fault is no false alarm."""
        if not self.incident.is_healthy:
            return False
        return any(r.cause != self.incident.injected for r in self.judged.roots)

    @property
    def is_located(self) -> bool | None:
        """The right cause points at the changed line; None where there is no line to point at."""
        truth = self.incident
        if truth.line is None or not self.is_first:
            return None
        named = self.judged.named[0]
        is_same_file = PurePath(named.file).name == PurePath(truth.file).name
        return named.line is not None and is_same_file and abs(named.line - truth.line) <= NEAR


@dataclass(frozen=True, slots=True)
class Score:
    """The counts of one group of incidents."""

    faulty: int = 0
    first: int = 0
    three: int = 0
    listed: int = 0
    wrong: int = 0
    abstained: int = 0
    overlooked: int = 0
    with_line: int = 0
    located: int = 0
    healthy: int = 0
    false_alarms: int = 0
    median_s: float = 0.0


def score(pairs: Iterable[Pair]) -> Score:
    """Count."""
    group = list(pairs)
    faulty = [p for p in group if not p.incident.is_healthy]
    healthy = [p for p in group if p.incident.is_healthy]
    lines = [p.is_located for p in faulty if p.is_located is not None]
    durations = [p.judged.duration_s for p in group]
    return Score(
        faulty=len(faulty),
        first=sum(p.is_first for p in faulty),
        three=sum(p.is_in_three for p in faulty),
        listed=sum(p.is_listed_first for p in faulty),
        wrong=sum(p.is_wrong for p in faulty),
        abstained=sum(p.is_abstention for p in faulty),
        overlooked=sum(p.is_overlooked for p in faulty),
        with_line=len(lines),
        located=sum(lines),
        healthy=len(healthy),
        false_alarms=sum(p.is_false_alarm for p in healthy),
        median_s=statistics.median(durations) if durations else 0.0,
    )


def by(pairs: Iterable[Pair], key: Callable[[Pair], str]) -> dict[str, Score]:
    """Return the scores of each group, largest first."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair)
    return {name: score(groups[name]) for name in sorted(groups, key=lambda n: -len(groups[n]))}


def confusions(pairs: Iterable[Pair]) -> Counter[tuple[str, str]]:
    """Count, for each true cause, what was named first as the answer."""
    counted: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        roots = pair.judged.roots
        said = roots[0].cause if roots else ("undecided" if pair.is_abstention else HEALTHY)
        truth = pair.incident.cause or HEALTHY
        counted[truth, truth if said in pair.incident.accepted else said] += 1
    return counted


def interval(hits: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson)."""
    if not count:
        return 0.0, 1.0
    z, share = 1.96, hits / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    half /= 1 + z * z / count
    return max(middle - half, 0.0), min(middle + half, 1.0)


def pair_up(incidents: Iterable[Incident], judged: Sequence[Judged], artifacts: str) -> list[Pair]:
    """Return truth and judgement side by side, for one set of artifacts."""
    truth: Mapping[str, Incident] = {i.name: i for i in incidents}
    return [
        Pair(truth[j.incident], j)
        for j in judged
        if j.artifacts == artifacts and j.incident in truth
    ]
