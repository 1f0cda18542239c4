"""The curves of a page as JSON: grouped by what shares an axis, thinned, gaps kept."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from traindx.model.findings import Diagnosis
from traindx.model.metric_names import kind_of
from traindx.model.run import Run, Series
from traindx.report import words
from traindx.report.drawn_curves import (
    broken_stretches,
    on_axis_of,
    onsets,
    plottable,
    thin,
    wants_log,
)

SERIES = 300
POINTS = 20_000
POINTS_IN_ALL = 300_000
FEWEST = 400
STRETCHES = 200
# metrics of one kind that are measured in units of their own
_APART = frozenset({"other", "throughput", "memory", "time"})


def charted(run: Run) -> list[Series]:
    """Return the curves that a page holds, losses first and layers last."""
    guide = run.main_loss()
    found = []
    for series in run.series.values():
        moved = on_axis_of(guide, series) if guide is not None else series
        ready = plottable(moved if moved is not None else series)
        if len(ready):
            found.append(ready)
    return sorted(found, key=_importance)[:SERIES]


def _importance(series: Series) -> tuple[int, str]:
    kind = kind_of(series.name)
    if series.name.startswith("layers/"):
        return 4, ""  # in the order of the model
    if kind == "loss":
        return 0, series.name
    return (1, "") if kind == "grad_norm" else (3, "") if kind in _APART else (2, "")


def data_of(run: Run, diagnosis: Diagnosis, curves: list[Series]) -> dict[str, Any]:
    """Return everything that the chart of a page draws."""
    limit = max(FEWEST, min(POINTS, POINTS_IN_ALL // max(len(curves), 1)))
    groups: dict[tuple[str, str], list[int]] = {}
    for i, series in enumerate(curves):
        groups.setdefault((_title(series), series.axis), []).append(i)
    titles = [title for title, _ in groups]
    return {
        "series": [_series_data(series, limit) for series in curves],
        "groups": [
            {
                "title": words.clean(title, 80)
                + (f" by {axis}" if titles.count(title) > 1 else ""),
                "axis": words.clean(axis, 40),
                "log": wants_log(curves[i] for i in members),
                "series": members,
            }
            for (title, axis), members in groups.items()
        ],
        "marks": [
            {"x": _step(o.step), "axis": words.clean(o.axis, 40), "label": words.clean(o.text, 60)}
            for o in onsets(run, diagnosis)
        ],
    }


def _title(series: Series) -> str:
    kind = kind_of(series.name)
    if series.name.startswith("layers/"):
        return f"{kind} by layer"
    return series.name.removeprefix("other/") if kind in _APART else kind


def _series_data(series: Series, limit: int) -> dict[str, Any]:
    shown = thin(series, limit)
    return {
        "name": words.clean(series.name, 120),
        "points": len(series),
        "x": [_step(float(s)) for s in shown.steps],
        "y": [float(f"{v:.6g}") if np.isfinite(v) else None for v in shown.values],
        "broken": [
            [_step(s.start), _step(s.end), s.kind] for s in broken_stretches(series)[:STRETCHES]
        ],
    }


def _step(value: float) -> float:
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def embedded(data: dict[str, Any]) -> str:
    """Return JSON that no HTML parser can leave early."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
