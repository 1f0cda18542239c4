"""The runs of a scan: one row a run, ranked by trouble, grouped by cause, compared by seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx.model.findings import Severity, Status

SEEDS = ("seed", "random_seed", "manual_seed", "random_state", "global_seed")
ENOUGH_SEEDS = 3
WIDE = 0.1  # spread over mean of a final metric: wider than most published gains


@dataclass(frozen=True, slots=True)
class Row:
    """One run of a scan, in short."""

    path: str
    status: str
    summary: str
    causes: tuple[tuple[str, float], ...] = ()
    severity: str | None = None
    final: tuple[tuple[str, float], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    duration_s: float = 0.0

    @property
    def trouble(self) -> tuple[int, float, str]:
        """The order of a scan: the worst first, what could not be read before what is healthy."""
        if self.causes:
            return -10 - Severity(self.severity or "low").rank, -self.causes[0][1], self.path
        order = {Status.INSUFFICIENT.value: -3, "unreadable": -2, Status.HEALTHY.value: 0}
        return order.get(self.status, -1), 0.0, self.path


@dataclass(slots=True)
class Scan:
    """What a scan found, and what it did not get to."""

    rows: list[Row] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def ranked(self) -> list[Row]:
        return sorted(self.rows, key=lambda row: row.trouble)

    def by_cause(self) -> dict[str, list[Row]]:
        """Return the runs of each root cause, the most frequent cause first."""
        groups: dict[str, list[Row]] = {}
        for row in self.ranked:
            for cause, _ in row.causes:
                groups.setdefault(cause, []).append(row)
        return dict(sorted(groups.items(), key=lambda item: -len(item[1])))

    def to_dict(self) -> dict[str, Any]:
        """Return the scan as JSON."""
        return {
            "schema_version": "1",
            "runs": [
                {
                    "path": r.path,
                    "status": r.status,
                    "summary": r.summary,
                    "causes": [{"cause": c, "confidence": round(p, 3)} for c, p in r.causes],
                    "severity": r.severity,
                    "final": dict(r.final),
                    "duration_s": round(r.duration_s, 3),
                }
                for r in self.ranked
            ],
            "by_cause": {c: [r.path for r in rows] for c, rows in self.by_cause().items()},
            "remarks": list(self.remarks),
            "unread": list(self.unread),
        }


def seed_variance(rows: Iterable[Row]) -> Iterator[str]:
    """Say which runs differ in nothing but their seed, and by how much their results do."""
    groups: dict[frozenset[tuple[str, str]], list[Row]] = {}
    for row in rows:
        seeds = [s for s in row.settings if s[0].rsplit(".", 1)[-1].lower() in SEEDS]
        if seeds:
            rest = frozenset(s for s in row.settings if s not in seeds and not _is_place(s[1]))
            groups.setdefault(rest, []).append(row)
    for group in groups.values():
        if len(group) < ENOUGH_SEEDS:
            continue
        for name in dict(group[0].final):
            values = np.array([dict(r.final)[name] for r in group if name in dict(r.final)])
            if len(values) < ENOUGH_SEEDS or not values.mean():
                continue
            spread = float(values.std(ddof=1) / abs(values.mean()))
            if spread > WIDE:
                yield (
                    f"seed-variance: {len(values)} runs that differ only in their seed end with "
                    f"{name} from {values.min():.4g} to {values.max():.4g} (standard deviation "
                    f"{spread:.0%} of the mean); compare methods over seeds, not single runs"
                )


def _is_place(value: str) -> bool:
    """A path or a name of the run itself differs between any two runs."""
    return "/" in value or "\\" in value
