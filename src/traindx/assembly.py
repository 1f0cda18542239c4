"""One run from many parts: the same metric told twice is counted once.

Readers and artifacts overlap: a log prints a loss that a CSV holds too, a per-epoch line repeats the
mean of the per-step lines, a resumed run continues in a second file. Two tellings of one metric are
joined when one continues the other, folded when they agree, and kept apart when they differ: the
longer one keeps the plain name and the other one gets `@2`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from traindx.model import Config, Floats, Run, Series, Setting, join_points

AGREEMENT = 0.02  # logs print three or four digits; a mean of a window differs by more than this
SHARED_ENOUGH = 0.9  # share of common points that must agree


def merge_runs(parts: Sequence[Run], name: str) -> Run:
    """Return the one run that several artifacts tell of."""
    architectures = [p.architecture for p in parts if p.architecture is not None]
    return Run(
        name=name,
        series=resolve(s for p in parts for s in p.series.values()),
        events=tuple(e for p in parts for e in p.events),
        failures=tuple(f for p in parts for f in p.failures),
        sources=tuple(s for p in parts for s in p.sources),
        config=_merge_settings(s for p in parts for s in p.config.settings),
        architecture=max(architectures, key=lambda a: len(a.tensors), default=None),
        artifacts=tuple(a for p in parts for a in p.artifacts),
        symptoms=tuple(s for p in parts for s in p.symptoms),
    )


def _merge_settings(settings: Iterable[Setting]) -> Config:
    seen: dict[tuple[str, str, str], Setting] = {}
    for setting in settings:
        seen.setdefault((setting.key, str(setting.value), setting.artifact), setting)
    return Config(tuple(seen.values()))


def resolve(told: Iterable[Series]) -> dict[str, Series]:
    """Return one series per canonical name, plus `name@2`, `name@3` where tellings differ."""
    groups: dict[str, list[Series]] = {}
    for series in told:
        if len(series):
            groups.setdefault(series.name.split("@")[0], []).append(unwrap_steps(series))
    resolved: dict[str, Series] = {}
    for name, tellings in groups.items():
        kept: list[Series] = []
        # by length, so that the fullest telling comes first whatever the order of the files
        for series in sorted(tellings, key=len, reverse=True):
            _fold_in(series, kept)
        for i, series in enumerate(kept):
            label = name if i == 0 else f"{name}@{i + 1}"
            resolved[label] = replace(series, name=label)
    return resolved


def _fold_in(series: Series, kept: list[Series]) -> None:
    for i, other in enumerate(kept):
        joined = _join(other, series)
        if joined is not None:
            kept[i] = joined
            return
    kept.append(series)


def _join(longer: Series, shorter: Series) -> Series | None:
    """Return the two as one where they tell the same story, else None."""
    if _is_retold(longer, shorter):
        return longer
    if longer.axis != shorter.axis or longer.axis == "point":
        return None
    if longer.origin.artifact != shorter.origin.artifact and _continues(longer, shorter):
        first, second = sorted((longer, shorter), key=lambda s: float(s.steps[0]))
        return join_points(first, second)
    return None


def _is_retold(longer: Series, shorter: Series) -> bool:
    """Tell whether every point of the shorter telling stands in the longer one too."""
    for ours, theirs in _shared_axes(longer, shorter):
        shared, at, of = np.intersect1d(ours, theirs, return_indices=True)
        if len(shared) >= SHARED_ENOUGH * len(np.unique(theirs)):
            return _agree(longer.values[at], shorter.values[of])
    # no common axis: the same values in the same order, as a "new best" line repeats them
    position = 0
    for value in shorter.values[: len(longer)]:
        matches = np.flatnonzero(
            np.isclose(longer.values[position:], value, rtol=1e-3, equal_nan=True)
        )
        if not len(matches):
            return False
        position += int(matches[0])
    return len(shorter) <= len(longer)


def _shared_axes(a: Series, b: Series) -> list[tuple[Floats, Floats]]:
    axes = []
    if a.axis == b.axis and a.axis != "point":
        axes.append((a.steps, b.steps))
    epochs = [s.epochs if len(s.epochs) else s.steps if s.axis == "epoch" else None for s in (a, b)]
    if epochs[0] is not None and epochs[1] is not None:
        axes.append((epochs[0], epochs[1]))
    return axes


def _agree(ours: Floats, theirs: Floats) -> bool:
    close = np.isclose(ours, theirs, rtol=AGREEMENT, atol=1e-12, equal_nan=True)
    return bool(np.mean(close) >= SHARED_ENOUGH)


def _continues(a: Series, b: Series) -> bool:
    """Tell whether one begins where the other ends, give or take what a resumed run repeats."""
    first, second = sorted((a, b), key=lambda s: float(s.steps[0]))
    overlap = float(first.steps[-1]) - float(second.steps[0])
    span = float(second.steps[-1]) - float(first.steps[0])
    return float(second.steps[-1]) > float(first.steps[-1]) and overlap < 0.25 * span


def unwrap_steps(series: Series) -> Series:
    """Turn a step that starts again in every epoch into one that counts on through the run."""
    starts = [0, *series.restarts()]
    if len(starts) < 2:
        return series
    ends = [*starts[1:], len(series)]
    firsts = series.steps[starts]
    lasts = series.steps[[e - 1 for e in ends]]
    from_the_top = bool(np.all(firsts <= firsts[0] + max(1.0, 0.05 * lasts.max())))
    epochs_rise = len(series.epochs) > 0 and bool(np.all(np.diff(series.epochs[starts]) > 0))
    even = len(starts) > 2 and bool(np.all(lasts[:-1] >= 0.8 * lasts.max()))
    if not from_the_top or not (epochs_rise or even):
        return series
    steps = series.steps.copy()
    offset = 0.0
    for start, end in zip(starts, ends, strict=True):
        steps[start:end] += offset
        offset = steps[end - 1]
    return replace(series, steps=steps)
