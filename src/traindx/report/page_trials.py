"""The experiments on the page: verdict, change, and both curves as a figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traindx.model.findings import Experiment
from traindx.model.run import Series
from traindx.model.trials import Arm, arms_of, course_of
from traindx.report import trial_words, words
from traindx.report.chart import Scale, scale_of
from traindx.report.drawn_curves import plottable, span_of, thin
from traindx.report.markup import Markup, join, tag
from traindx.report.words import number, step

POINTS = 400  # of each rerun
WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 62, 8, 10, 26
TICKS = (0.0, 0.5, 1.0)


def experiments(tested: Sequence[Experiment]) -> Markup | str:
    """Return the section of all experiments, or nothing where there were none."""
    if not tested:
        return ""
    title = tag("h2", {"id": "experiments-title"}, "Experiments")
    parts = (_experiment(experiment, i) for i, experiment in enumerate(tested))
    return tag(
        "section", {"id": "experiments", "aria-labelledby": "experiments-title"}, title, *parts
    )


def anchors_of(tested: Sequence[Experiment]) -> dict[str, str]:
    """Return where on the page the evidence of each experiment leads."""
    return {f"experiment: {e.change}": f"experiment-{i}" for i, e in enumerate(tested)}


def _experiment(experiment: Experiment, index: int) -> Markup:
    verdict = experiment.verdict.value
    badge = tag("span", {"class": f"badge {verdict}"}, verdict)
    name = tag("code", {}, words.clean(experiment.cause, 80))
    rows = trial_words.rows_of(experiment)
    pairs = [part for label, said in rows for part in (tag("dt", {}, label), tag("dd", {}, said))]
    return tag(
        "article",
        {"class": "experiment", "id": f"experiment-{index}"},
        tag("h3", {}, badge, " ", name),
        tag("dl", {}, *pairs),
        _figure(experiment, index),
    )


def _figure(experiment: Experiment, index: int) -> Markup | None:
    curves = trial_words.curves_of(experiment)
    if not curves:
        return None
    drawing = _drawing(experiment, curves, index)
    keys = [
        tag("span", {"class": f"key {kind}"}, _key(kind), label)
        for kind, label in (("control", "as it is"), ("changed", "changed"))
        if any(c.name == label for c in curves)
    ]
    is_log = (scale_of(curves) or Scale(0, 1, False)).is_log
    ceiling = trial_words.ceiling_of(experiment)
    how = [f"loss by {curves[0].axis}", *(["log scale"] if is_log else []), "one line per seed"]
    how += [f"cut at {number(ceiling)}"] if ceiling is not None else []
    caption = tag("figcaption", {}, *keys, ", ".join(how))
    return tag("figure", {"class": "trial"}, drawing, caption)


def _key(kind: str) -> Markup:
    line = tag("line", {"class": kind, "x1": 0, "x2": 22, "y1": 4, "y2": 4})
    return tag("svg", {"viewBox": "0 0 22 8", "aria-hidden": "true"}, line)


def _drawing(experiment: Experiment, curves: Sequence[Series], index: int) -> Markup:
    ceiling = trial_words.ceiling_of(experiment)
    seen = [(kind, s) for kind, arm in _sides(experiment) for s in _lines(arm, ceiling)]
    scale = scale_of([s for _, s in seen])
    low, high = span_of([s for _, s in seen])
    described = "; ".join(f"{arm.label}: {course_of(arm)}" for arm in arms_of(experiment))
    parts = [tag("title", {"id": f"trial-{index}"}, words.clean(described, 600))]
    if scale is not None:
        parts += [_tick(scale, fraction) for fraction in TICKS]
        parts += [_line(kind, series, scale, (low, high)) for kind, series in seen]
    ends = ((low, LEFT, "start"), (high, WIDTH - RIGHT, "end"))
    for at, x, anchor in ends:
        parts.append(_text(x, HEIGHT - 8, f"{curves[0].axis} {step(at)}", anchor))
    attributes = {
        "viewBox": f"0 0 {WIDTH} {HEIGHT}",
        "role": "img",
        "aria-labelledby": f"trial-{index}",
    }
    return tag("svg", attributes, *parts)


def _sides(experiment: Experiment) -> list[tuple[str, Arm]]:
    control, changed = arms_of(experiment)
    return [("changed", changed), ("control", control)]  # dashes above a line hide nothing


def _lines(arm: Arm, ceiling: float | None) -> list[Series]:
    made = (plottable(trial_words.series_of(t, arm.label, ceiling)) for t in arm.trials)
    return [thin(series, POINTS) for series in made if len(series)]


def _tick(scale: Scale, fraction: float) -> Markup:
    y = _height(fraction)
    line = tag(
        "line",
        {"class": "grid", "x1": LEFT, "x2": WIDTH - RIGHT, "y1": f"{y:.1f}", "y2": f"{y:.1f}"},
    )
    return join(line, _text(LEFT - 8, y + 4, f"{scale.value_at(fraction):.3g}", "end"))


def _text(x: float, y: float, said: str, anchor: str, kind: str | None = None) -> Markup:
    place = {"class": kind, "x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
    return tag("text", place, said)


def _height(fraction: float) -> float:
    return TOP + (1 - fraction) * (HEIGHT - TOP - BOTTOM)


def _line(kind: str, series: Series, scale: Scale, span: tuple[float, float]) -> Markup:
    """Draw a curve with gaps where it is no number, and a cross where it ends as none."""
    low, high = span
    # quarters, because the span of two huge steps is no number
    wide = high / 4 - low / 4
    fractions = (series.steps / 4 - low / 4) / wide if wide > 0 else np.full(len(series), 0.5)
    across = LEFT + fractions * (WIDTH - LEFT - RIGHT)
    heights = scale.fraction(np.where(series.is_finite, series.values, scale.low))
    path, is_drawing = [], False
    for x, height, is_number in zip(across, heights, series.is_finite, strict=True):
        if is_number:
            path.append(f"{'L' if is_drawing else 'M'}{x:.1f} {_height(height):.1f}")
        is_drawing = bool(is_number)
    parts = [tag("path", {"class": kind, "d": " ".join(path)})] if path else []
    broken = np.flatnonzero(~series.is_finite)
    if len(broken):
        parts.append(_text(float(across[broken[0]]), TOP + 4, "NaN", "middle", "lost"))
    return join(*parts)
