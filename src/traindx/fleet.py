"""Many runs at once, on local processes: one row a run, ranked by trouble, grouped by cause."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from traindx import diagnosis
from traindx.artifacts import open_paths
from traindx.artifacts.folders import find_runs
from traindx.errors import TraindxError, UnreadableArtifact
from traindx.evidence import Diagnosis, Severity, Status
from traindx.model import Run
from traindx.names import HIGHER_IS_BETTER, LOWER_IS_BETTER, kind_of, phase_of

FEW = 4  # runs that one process diagnoses before a second one would have started
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


def scan(
    folders: Sequence[str],
    *,
    workers: int | None = None,
    deadline: float | None = None,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> Scan:
    """Diagnose every run below the folders; an interrupt or the deadline ends it early."""
    paths = [str(path) for folder in folders for path in _runs_of(folder)]
    found = Scan(unread=list(paths))
    try:
        for row in _diagnosed(paths, workers or os.cpu_count() or 1, deadline):
            found.rows.append(row)
            found.unread.remove(row.path)
            tell(len(found.rows), len(paths))
    except KeyboardInterrupt:
        found.remarks.append("interrupted: what follows is what was known by then")
    found.remarks += list(_seed_variance(found.rows))
    return found


def _runs_of(folder: str) -> list[Path]:
    path = Path(folder)
    if not path.exists():
        raise UnreadableArtifact(folder, "no such folder", "a folder with runs in it")
    runs = [path] if path.is_file() else find_runs(path)
    if not runs:
        raise UnreadableArtifact(folder, "no training run found below it", "its parent folder")
    return runs


def _diagnosed(paths: Sequence[str], workers: int, deadline: float | None) -> Iterator[Row]:
    if len(paths) <= FEW or workers == 1:
        for path in paths:
            if deadline is not None and time.monotonic() > deadline:
                return
            yield diagnose_row(path)
        return
    # spawned, not forked: a fork of a threaded program (a notebook) can lock up
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        pending = {pool.submit(diagnose_row, path) for path in paths}
        try:
            yield from _as_they_end(pending, deadline)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _as_they_end(pending: set[Future[Row]], deadline: float | None) -> Iterator[Row]:
    while pending:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        done, pending = wait(pending, timeout=left, return_when=FIRST_COMPLETED)
        if not done:
            return
        yield from (future.result() for future in done)


def diagnose_row(path: str) -> Row:
    """Diagnose one run in short; whatever is wrong with it becomes its row."""
    started = time.monotonic()
    try:
        run = open_paths([path])
        found = diagnosis.diagnose(run)
    except TraindxError as error:
        return Row(path, "unreadable", str(error), duration_s=time.monotonic() - started)
    return _row(path, run, found, time.monotonic() - started)


def _row(path: str, run: Run, found: Diagnosis, duration_s: float) -> Row:
    roots = found.root_causes
    worst = max((h.severity for h in roots), key=lambda s: s.rank, default=None)
    return Row(
        path=path,
        status=found.status.value,
        summary=found.summary,
        causes=tuple((h.cause, h.confidence) for h in roots),
        severity=None if worst is None else worst.value,
        final=tuple(_final_metrics(run)),
        settings=tuple((s.key, str(s.value)) for s in run.config.settings),
        duration_s=duration_s,
    )


def _final_metrics(run: Run) -> Iterator[tuple[str, float]]:
    for name, series in run.series.items():
        finite = series.finite()
        judged = kind_of(name) in HIGHER_IS_BETTER | LOWER_IS_BETTER
        if judged and phase_of(name) in ("val", "test") and "@" not in name and len(finite):
            yield name, float(np.median(finite.values[-3:]))


def _seed_variance(rows: Iterable[Row]) -> Iterator[str]:
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
