"""The outputs in a log joined with its metrics: when a text was sampled, and scores by class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from traindx.model.merging import resolve
from traindx.model.run import Config, Origin, Run, Series, Setting
from traindx.readers.outputs.log import Outputs, read_outputs
from traindx.readers.outputs.matrices import ClassificationReport

_SCORES = ("precision", "recall", "f1")


def with_outputs(run: Run, path: Path) -> Run:
    """Return a run of a log with what its model put out."""
    found = read_outputs(path)
    clock = _clock(run)
    pairs = found.pairs.confusion(found.artifact)
    reported = _reported(found, clock)
    return replace(
        run,
        series=resolve([*run.series.values(), *reported]) if reported else run.series,
        config=Config((*_others(run, found), *found.counts, *_supports(found))),
        samples=tuple(replace(s, step=_step(clock, line)) for line, s in found.samples),
        confusions=(*found.confusions, *((pairs,) if pairs is not None else ())),
    )


def _others(run: Run, found: Outputs) -> Iterator[Setting]:
    """Yield the settings of a log; a line of class counts looks like one."""
    counted = {setting.locator for setting in found.counts}
    return (s for s in run.config.settings if s.locator not in counted)


def _clock(run: Run) -> Series | None:
    """Return the series whose lines tell best when a line was written."""
    told = [s for s in run.series.values() if s.axis in {"step", "epoch"} and len(s.places)]
    return max(told, key=lambda s: (s.axis == "step", len(s)), default=None)


def _step(clock: Series | None, line: int) -> float | None:
    if clock is None or clock.axis != "step":
        return None
    at = int(np.searchsorted(clock.places, line, side="right")) - 1
    return float(clock.steps[max(at, 0)])


def _reported(found: Outputs, clock: Series | None) -> list[Series]:
    """Return the scores by class of every report as series."""
    points: dict[str, list[tuple[int, float]]] = {}
    for line, phase, report in found.reports:
        for name, value in _scores(report, phase):
            points.setdefault(name, []).append((line, value))
    made = []
    for name, told in points.items():
        lines = np.array([line for line, _ in told], dtype=np.int64)
        values = np.array([value for _, value in told])
        axis, steps = "point", np.arange(len(told), dtype=np.float64)
        if clock is not None:
            at = np.maximum(np.searchsorted(clock.places, lines, side="right") - 1, 0)
            axis, steps = clock.axis, clock.steps[at]
        origin = Origin(found.artifact, name.split("/", 2)[2] + " " + name.split("/", 1)[0])
        made.append(Series(name, values, steps, origin, axis, places=lines))
    return made


def _scores(report: ClassificationReport, phase: str) -> list[tuple[str, float]]:
    found = []
    for label, row in report.rows.items():
        part = label.replace("/", " ").replace("@", " ")
        if label in report.classes:
            part = f"class {part}"
        elif label != "macro avg":
            continue
        found += [(f"{kind}/{phase}/{part}", row[i]) for i, kind in enumerate(_SCORES)]
    return found


def _supports(found: Outputs) -> list[Setting]:
    """Return how many examples of each class the last report of a phase counts."""
    last = {phase: (line, report) for line, phase, report in found.reports}
    return [
        Setting(
            f"{phase}.class_counts",
            {label: row[3] for label, row in report.classes.items()},
            found.artifact,
            f"line {line}",
        )
        for phase, (line, report) in last.items()
    ]
