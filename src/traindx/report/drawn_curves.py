"""Which curves a report draws, on which axis, where something begins, and with how many points."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from traindx.model.findings import Diagnosis, Evidence, Finding, Hypothesis
from traindx.model.metric_names import kind_of, phase_of
from traindx.model.run import Floats, Run, Series
from traindx.report import words

LOG_FROM = 100.0  # largest / smallest; on a linear axis less than this is still told apart
MOSTLY = 0.95  # a rounded loss prints as 0.0000 now and then; that alone forbids no log axis

# how a sentence speaks of a metric, where it does not use the metric's own name
_SPOKEN = {
    "grad_norm": ("gradient norm", "gradient"),
    "lr": ("learning rate",),
    "loss_scale": ("loss scale",),
    "weight_norm": ("weight norm",),
    "throughput": ("samples per second", "tokens per second"),
    "memory": ("memory",),
}
_PHASES = {"train": ("train", "training"), "val": ("val", "validation"), "test": ("test",)}


def plottable(series: Series) -> Series:
    """Return the points that have a place on an axis, in the order of that axis."""
    counted = series.timeline()
    counted = counted.take(np.isfinite(counted.steps))
    if len(counted) > 1 and bool(np.any(np.diff(counted.steps) < 0)):
        counted = counted.take(np.argsort(counted.steps, kind="stable"))
    return counted


def headline_curves(run: Run) -> list[Series]:
    """Return the curves of the first chart: the losses, or else the longest metric there is."""
    train, val = run.main_loss("train"), run.main_loss("val")
    if train is not None and val is not None:
        return _drawn([train, on_axis_of(train, val)])
    if train is not None or val is not None:
        return _drawn([train, val])
    longest = max(run.series.values(), key=len, default=None)
    return _drawn([longest])


def _drawn(found: Iterable[Series | None]) -> list[Series]:
    ready = [plottable(series) for series in found if series is not None]
    return [series for series in ready if len(series)]


def on_axis_of(guide: Series, series: Series) -> Series | None:
    """Return a series on the axis of another one, or None where nothing relates the two."""
    if series.axis == guide.axis:
        return series
    epochs = series.steps if series.axis == "epoch" else series.epochs
    if guide.axis == "epoch" and len(epochs) == len(series):
        return replace(series, steps=epochs, axis="epoch")
    if guide.axis != "step" or len(epochs) != len(series) or len(guide.epochs) != len(guide):
        return None
    known = np.isfinite(guide.epochs) & np.isfinite(guide.steps)
    if not known.any():
        return None
    # what is measured once an epoch stands at the end of that epoch
    order = np.argsort(guide.epochs[known], kind="stable")
    ends = np.searchsorted(guide.epochs[known][order], epochs, side="right") - 1
    return replace(series, steps=guide.steps[known][order][np.maximum(ends, 0)], axis="step")


def wants_log(curves: Iterable[Series]) -> bool:
    """Tell whether the values span so much that a linear axis would flatten them."""
    values = np.concatenate([np.empty(0), *(c.values[c.is_finite] for c in curves)])
    positive = values[values > 0]
    if len(positive) < 2 or len(positive) < MOSTLY * len(values):
        return False
    return bool(np.log10(positive.max()) - np.log10(positive.min()) > np.log10(LOG_FROM))


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive points whose value is no number."""

    start: float
    end: float
    kind: str
    points: int
    reaches_end: bool


def broken_stretches(series: Series) -> list[Stretch]:
    """Return the stretches of NaN and Inf in the order of the axis."""
    bad = ~series.is_finite
    edges = np.flatnonzero(np.diff(np.concatenate([[False], bad, [False]]).astype(np.int8)))
    found = []
    for first, stop in zip(edges[::2], edges[1::2], strict=True):
        kind = "NaN" if bool(np.isnan(series.values[first:stop]).any()) else "Inf"
        start, end = float(series.steps[first]), float(series.steps[stop - 1])
        found.append(Stretch(start, end, kind, int(stop - first), bool(stop == len(series))))
    return found


def thin(series: Series, limit: int) -> Series:
    """Return at most about `limit` points that look the same: the extremes and the gaps stay."""
    if len(series) <= limit:
        return series
    edges = np.linspace(0, len(series), max(limit // 4, 1) + 1).astype(np.int64)
    keep = {0, len(series) - 1}
    for start, stop in pairwise(edges):
        if start == stop:
            continue
        keep.add(int(start))
        part = series.values[start:stop]
        finite = np.flatnonzero(np.isfinite(part))
        if len(finite) < len(part):
            keep.add(int(start + np.flatnonzero(~np.isfinite(part))[0]))
        if len(finite):
            keep.add(int(start + finite[np.argmin(part[finite])]))
            keep.add(int(start + finite[np.argmax(part[finite])]))
    return series.take(np.array(sorted(keep), dtype=np.int64))


def series_cited(run: Run, evidence: Evidence) -> Series | None:
    """Return the series that evidence speaks of: it covers the steps and fits place and words."""
    if evidence.steps is None or not np.all(np.isfinite(evidence.steps)):
        return None
    best: tuple[float, Series | None] = (0.0, None)
    for series in run.series.values():
        score = _fit(series, evidence)
        if score > best[0]:
            best = (score, series)
    return best[1]


def _fit(series: Series, evidence: Evidence) -> float:
    start = evidence.steps[0] if evidence.steps else float("nan")
    at = np.flatnonzero(series.steps == start)
    if not len(at):
        return 0.0
    score = 1.0 + 4.0 * (series.origin.artifact == evidence.artifact)
    score += 2.0 * any(evidence.locator.startswith(series.where(int(i))) for i in at[:3])
    return score + _mention(series, evidence.says.lower())


def _mention(series: Series, says: str) -> float:
    """Return how plainly a sentence names a metric; a longer name beats a part of it."""
    for name in (series.name, series.origin.name):
        if name and re.search(rf"(?<![\w/.]){re.escape(name.lower())}(?![\w/])", says):
            return 8.0 + min(len(name), 100) / 100
    kind, phase = kind_of(series.name), phase_of(series.name)
    if not any(word in says for word in (kind, *_SPOKEN.get(kind, ()))):
        return 0.0
    others = [w for p, spoken in _PHASES.items() if p != phase for w in spoken]
    if phase and any(re.search(rf"\b{w}\b", says) for w in _PHASES.get(phase, ())):
        return 3.0
    if phase and any(re.search(rf"\b{w}\b", says) for w in others):
        return 0.0
    # "the loss" is the training loss, and a plain metric comes before its parts
    return 2.0 if phase != "val" and series.name.count("/") < 2 else 1.0


@dataclass(frozen=True, slots=True)
class Onset:
    """The time at which a cause began to show."""

    step: float
    axis: str
    text: str
    cause: str


def onset_of(run: Run, hypothesis: Hypothesis) -> Onset | None:
    """Return when a cause began to show, in the words of the series that shows it."""
    onset = hypothesis.onset
    if onset is None or not np.isfinite(onset):
        return None
    finding = next(f for f in hypothesis.findings if f.onset == onset)
    axis, text = _time_in_words(run, finding, onset)
    return Onset(onset, axis, text, hypothesis.cause)


def _time_in_words(run: Run, finding: Finding, onset: float) -> tuple[str, str]:
    cited = [s for e in finding.evidence if (s := series_cited(run, e)) is not None]
    loss = run.main_loss()
    for series in [*cited, *([loss] if loss is not None else [])]:
        at = np.flatnonzero(series.steps == onset)
        if len(at):
            return series.axis, series.when(int(at[0]))
    axis = cited[0].axis if cited else loss.axis if loss is not None else "step"
    return axis, f"{axis} {words.step(onset)}"


def onsets(run: Run, diagnosis: Diagnosis) -> list[Onset]:
    """Return when each root cause began to show; without causes, when the first symptom did."""
    found = [o for h in diagnosis.root_causes if (o := onset_of(run, h)) is not None]
    if found or diagnosis.root_causes:
        return found
    begun = [f for f in diagnosis.findings if f.is_symptom and f.onset is not None]
    first = min(begun, key=lambda f: f.onset or 0.0, default=None)
    if first is None or first.onset is None or not np.isfinite(first.onset):
        return []
    return [Onset(first.onset, *_time_in_words(run, first, first.onset), first.detector)]


def first_onset(run: Run, diagnosis: Diagnosis, curves: list[Series]) -> Onset | None:
    """Return the onset to mark on a chart of these curves, where it lies on their axis."""
    if not curves:
        return None
    low = min(float(c.steps[0]) for c in curves)
    high = max(float(c.steps[-1]) for c in curves)
    fitting = (o for o in onsets(run, diagnosis) if o.axis == curves[0].axis)
    # what holds from the very start has no onset to show
    return next((o for o in fitting if low < o.step <= high), None)


def span_of(curves: Iterable[Series]) -> tuple[float, float]:
    """Return the first and the last step of curves that are ready to plot."""
    curves = list(curves)
    return min(float(c.steps[0]) for c in curves), max(float(c.steps[-1]) for c in curves)


def finite_values(curves: Iterable[Series]) -> Floats:
    """Return every value of these curves that is a number."""
    return np.concatenate([np.empty(0), *(c.values[c.is_finite] for c in curves)])
