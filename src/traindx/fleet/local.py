"""Many runs diagnosed at once, on local processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from traindx.diagnosis import engine
from traindx.errors import TraindxError, UnreadableArtifact
from traindx.fleet.grouping import Row, Scan, seed_variance
from traindx.model.findings import Diagnosis
from traindx.model.metric_names import HIGHER_IS_BETTER, LOWER_IS_BETTER, kind_of, phase_of
from traindx.model.run import Run
from traindx.readers.folders import find_runs
from traindx.readers.opening import open_paths

FEW = 4  # runs that one process diagnoses before a second one would have started


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
    found.remarks += list(seed_variance(found.rows))
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
        found = engine.diagnose(run)
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
