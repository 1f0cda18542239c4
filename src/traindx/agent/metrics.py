"""Metrics for an assistant: few points that keep every extreme, with the places to cite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from traindx.errors import UnknownName, UnreadableArtifact
from traindx.model.findings import Diagnosis
from traindx.model.metric_names import kind_of
from traindx.model.run import Run, Series
from traindx.report.digest import digest
from traindx.report.drawn_curves import (
    broken_stretches,
    first_onset,
    headline_curves,
    thin,
    wants_log,
)

MAX_POINTS = 1000  # of one metric
TOTAL_POINTS = 3000
LISTED = 200  # names of further metrics
DIGITS = 6  # significant; a log seldom has more
_FIRST = ("loss", "grad_norm", "lr", "accuracy", "loss_scale")


def extract(run: Run, names: Sequence[str], points: int) -> dict[str, Any]:
    """Return the metrics that the names or patterns choose; without any, those that matter most."""
    _need_metrics(run)
    chosen = _chosen(run, names)
    each = max(10, min(points, MAX_POINTS, TOTAL_POINTS // max(len(chosen), 1)))
    room = TOTAL_POINTS // each
    taken = [s.name for s in chosen[:room]]
    others = [name for name in run.series if name not in taken]
    told: dict[str, Any] = {
        "run": run.name,
        "metrics": [_metric(series, each) for series in chosen[:room]],
        "available": others[:LISTED],
    }
    if len(others) > LISTED:
        told["left_out"] = {"available": len(others) - LISTED, "more": "ask by a pattern"}
    return told


def _need_metrics(run: Run) -> None:
    if not any(len(series) for series in run.series.values()):
        remedy = "a log, a table or JSON of metrics, a tracker's files or a recording"
        raise UnreadableArtifact(run.name, "it has no metrics", remedy)


def _chosen(run: Run, names: Sequence[str]) -> list[Series]:
    filled = [name for name, series in run.series.items() if len(series)]
    if names:
        wanted = [n for n in filled if any(n == p or fnmatchcase(n, p) for p in names)]
        if not wanted:
            some = ", ".join(filled[:20])
            raise UnknownName(f"no metric is called {' or '.join(names)}. There are: {some}")
    else:
        wanted = sorted((n for n in filled if _rank(n) < len(_FIRST)), key=_rank)[:12]
        wanted = wanted or filled[:8]
    found = (run.get(name) for name in wanted)
    return [series for series in found if series is not None and len(series)]


def _rank(name: str) -> int:
    """Say how much a metric tells: the parts and the ranks of a metric come by their own names."""
    kind = kind_of(name)
    is_part = name.startswith(("layers/", "ranks/", "processes/")) or "@" in name
    return _FIRST.index(kind) if kind in _FIRST and not is_part else len(_FIRST)


def _metric(series: Series, points: int) -> dict[str, Any]:
    kept = thin(series, points)
    return {
        **summary_of(series),
        "shown": len(kept),
        "steps": [_short(step) for step in kept.steps],
        "values": [_short(value) for value in kept.values],
    }


def summary_of(series: Series) -> dict[str, Any]:
    """Return a metric in figures, each extreme with its place in the artifact."""
    figures = digest(series)
    finite = np.flatnonzero(series.is_finite)
    broken = np.flatnonzero(~series.is_finite)
    told: dict[str, Any] = {
        "name": series.name,
        "artifact": series.origin.artifact,
        "called": series.origin.name,
        "axis": series.axis,
        "points": figures.points,
        "not_numbers": figures.broken,
        "last": _point(series, len(series) - 1),
    }
    if len(finite):
        told["min"] = _point(series, int(finite[np.argmin(series.values[finite])]))
        told["max"] = _point(series, int(finite[np.argmax(series.values[finite])]))
    if len(broken):
        told["first_not_a_number"] = _point(series, int(broken[0]))
    return told


def _point(series: Series, index: int) -> dict[str, Any]:
    step, value = _short(series.steps[index]), _short(series.values[index])
    return {"step": step, "value": value, "locator": series.where(index)}


def _short(value: float) -> float | int:
    number = float(f"{float(value):.{DIGITS}g}")
    whole = float(value)
    return int(whole) if whole.is_integer() and abs(whole) < 1e15 else number


def alone(run: Run, metric: str) -> Run:
    """Return the run with one metric only, so that it is the one that is drawn."""
    series = run.get(metric)
    if series is None:
        raise UnknownName(f"no metric is called {metric!r}. There are: {_some(run)}")
    return replace(run, series={metric: series}, name=f"{run.name}: {metric}")


def _some(run: Run) -> str:
    return ", ".join(list(run.series)[:20]) or "none"


def describe(run: Run, diagnosis: Diagnosis) -> dict[str, Any]:
    """Say in figures what a picture of the losses shows."""
    _need_metrics(run)
    curves = headline_curves(run)
    onset = first_onset(run, diagnosis, curves)
    return {
        "run": run.name,
        "curves": [summary_of(curve) for curve in curves],
        "scale": "log" if wants_log(curves) else "linear",
        "onset": None if onset is None else {"at": onset.text, "of": onset.cause},
        "not_numbers": list(_stretches(curves)),
        "status": diagnosis.status.value,
    }


def _stretches(curves: Sequence[Series]) -> Iterator[dict[str, Any]]:
    for curve in curves:
        for stretch in broken_stretches(curve)[:10]:
            yield {
                "metric": curve.name,
                "kind": stretch.kind,
                "from": stretch.start,
                "to": stretch.end,
                "points": stretch.points,
                "reaches_end": stretch.reaches_end,
            }
