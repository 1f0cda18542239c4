"""What a rerun came to, by a metric that no change can fake.

First what the program itself evaluates on held-out data, measured inside; else the metrics that it
prints; else the loss of its first training batches in evaluation mode, which says how well it fits
and not how well it generalises.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from traindx.errors import TraindxError
from traindx.experiments.changes import Rerun
from traindx.experiments.probes.census import read_json
from traindx.model.metric_names import HIGHER_IS_BETTER, LOWER_IS_BETTER, kind_of
from traindx.model.run import Run
from traindx.readers.opening import open_paths

HELD_OUT = ("val", "test")
ASIDE = ("kept", "training")  # sources that are no evaluation of the program's own
FITS = "loss/train (evaluation mode)"
TAIL = 0.15  # of the evaluations, whose mean is the level
SCORES = ("accuracy", "f1", "auc", "map", "iou", "dice", "r2", "recall", "precision", "em")


@dataclass(frozen=True, slots=True)
class Points:
    """One metric over a rerun: values by the examples that were trained on."""

    name: str
    rows: tuple[float, ...]
    values: tuple[float, ...]
    count: int = 0  # examples behind each value, where it is known

    @property
    def is_higher_better(self) -> bool:
        return kind_of(self.name) in HIGHER_IS_BETTER

    @property
    def is_held_out(self) -> bool:
        return self.name != FITS

    def up_to(self, rows: float) -> Points:
        """Return the points until so many examples, where that is known."""
        if not self.rows:
            return self
        kept = [i for i, at in enumerate(self.rows) if at <= rows]
        return Points(
            self.name,
            tuple(self.rows[i] for i in kept),
            tuple(self.values[i] for i in kept),
            self.count,
        )

    @property
    def level(self) -> float:
        """Return where the metric ends: the mean of its last values."""
        if not self.values:
            return math.nan
        tail = self._tail()
        return float(np.mean(tail)) if np.all(np.isfinite(tail)) else math.inf

    @property
    def wiggle(self) -> float:
        """Return how much the level shakes from one evaluation to the next."""
        tail = np.asarray(self.values[-max(3, len(self.values) // 3) :], dtype=np.float64)
        if len(tail) < 3 or not np.all(np.isfinite(tail)):
            return 0.0
        return float(np.std(np.diff(tail)) / math.sqrt(2.0) / math.sqrt(len(self._tail())))

    def _tail(self) -> tuple[float, ...]:
        return self.values[-max(1, round(TAIL * len(self.values))) :]


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a rerun came to."""

    rerun: Rerun
    metrics: Mapping[str, Points] = field(default_factory=dict)
    steps: int = 0
    rows: int = 0

    @property
    def has_failed(self) -> bool:
        """Tell whether it ended by itself and badly."""
        return not self.rerun.stopped and self.rerun.exit_code != 0

    @property
    def is_whole(self) -> bool:
        return not self.rerun.stopped and self.rerun.exit_code == 0


def measured(rerun: Rerun) -> Measurement:
    """Read what a rerun wrote."""
    told: Mapping[str, Any] = {}
    for path in sorted(rerun.folder.glob(".yardstick-*.json")):
        found = read_json(path)
        if found is not None and found.get("steps", 0) >= told.get("steps", 0):
            told = found
    metrics = {p.name: p for p in _held_out(told.get("told", ()))}
    if not metrics:
        metrics = {p.name: p for p in _printed(rerun.folder)}
    metrics |= {p.name: p for p in _kept(told.get("told", ()))}
    return Measurement(rerun, metrics, int(told.get("steps", 0)), int(told.get("rows", 0)))


def _held_out(told: Sequence[Mapping[str, Any]]) -> Iterator[Points]:
    seen = [t for t in told if t["source"] not in ASIDE and not t["is_trained_on"]]
    sources = {t["source"] for t in seen}
    own = sources - {"equality", "difference"}  # a loss of torch says most
    chosen = [t for t in seen if t["source"] in (own or sources)]
    most = max((t["count"] for t in chosen), default=0)
    chosen = [t for t in chosen if t["count"] >= most / 2]  # no single batch looked at in passing
    yield from _points(chosen, "val")


def _kept(told: Sequence[Mapping[str, Any]]) -> Iterator[Points]:
    chosen = [t for t in told if t["source"] == "kept"]
    rows, values = _series(chosen, "loss")
    if values:
        yield Points(FITS, rows, values, int(chosen[-1]["count"]))


def _points(chosen: Sequence[Mapping[str, Any]], phase: str) -> Iterator[Points]:
    if not chosen:
        return
    count = int(chosen[-1]["count"])
    kind = "mse" if chosen[-1]["kind"] == "values" else "loss"
    rows, values = _series(chosen, "score")
    if values:
        yield Points(f"accuracy/{phase}", rows, values, count)
    rows, values = _series(chosen, "loss")
    if values:
        yield Points(f"{kind}/{phase}", rows, values, count)


def _series(
    chosen: Sequence[Mapping[str, Any]], key: str
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return one value for each moment: the mean over what was evaluated then."""
    at: dict[float, list[tuple[float, int]]] = {}
    for told in chosen:
        value = told.get(key)
        if isinstance(value, (int, float)):
            at.setdefault(float(told["rows"]), []).append((float(value), max(1, told["count"])))
    rows = sorted(at)
    means = [sum(v * n for v, n in at[r]) / sum(n for _, n in at[r]) for r in rows]
    return tuple(rows), tuple(means)


def _printed(folder: Path) -> Iterator[Points]:
    """Return the held-out metrics that a program prints, where one can see which way is better."""
    logs = [os.fspath(p) for p in sorted(folder.glob("output*.log"))]
    if not logs:
        return
    try:
        run = open_paths(logs)
    except TraindxError:
        return
    yield from printed_metrics(run)


def printed_metrics(run: Run) -> Iterator[Points]:
    """Return the held-out metrics of a run."""
    for phase in HELD_OUT:
        names = [n for n in run.series if n.endswith(f"/{phase}")]
        known = [n for n in names if kind_of(n) in HIGHER_IS_BETTER | LOWER_IS_BETTER]
        for name in known:
            series = run.get(name)
            if series is not None and len(series):
                yield Points(name, (), tuple(float(v) for v in series.values))
        if known:
            return


def main_metric(measurement: Measurement) -> str:
    """Return the metric that a rerun is judged by: a held-out score, else a held-out loss."""
    names = [n for n, p in measurement.metrics.items() if p.values]
    scores = [n for kind in SCORES for n in names if kind_of(n) == kind]
    held_out = [n for n in names if measurement.metrics[n].is_held_out]
    losses = [n for n in held_out if kind_of(n) in LOWER_IS_BETTER]
    return next(iter([*scores, *losses, *held_out, *names]), "")


def other_metric(measurement: Measurement, main: str) -> str:
    """Return the held-out loss beside a score; empty where there is none."""
    names = (n for n, p in measurement.metrics.items() if n != main and p.is_held_out)
    return next((n for n in names if kind_of(n) in LOWER_IS_BETTER), "")
