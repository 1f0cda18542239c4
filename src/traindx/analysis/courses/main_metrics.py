"""The metrics that a run is judged by: its objective, what is held out, its reward."""

from __future__ import annotations

import numpy as np

from traindx.analysis.courses.course import MetricCourse, course_of, is_counted
from traindx.analysis.courses.held_out import SCORED
from traindx.model.metric_names import HIGHER_IS_BETTER, LOWER_IS_BETTER, kind_of
from traindx.model.run import Floats, Run, Series

FEWEST = 3  # points of a course
EVALUATIONS = 6  # of a metric that is said to have left its best
LEFT = 0.12  # of its size: how far every held-out metric ends below its best …
SURELY = 4.0  # … in noise levels …
TURNED = 0.85  # … and when it was there, as a share of the run
AWAY = 0.1  # of its best: a score that ends so far from it, or a loss three times as far
JUMPS = 1.3  # times, from one evaluation to the next
OFTEN = 0.34  # of the evaluations after the first third
AT_THE_FLOOR = 0.1  # of its first level: a loss that is nearly nothing jumps by any factor
LOSSES = LOWER_IS_BETTER - {"wer", "cer", "fid", "error"}


def course_of_series(series: Series) -> MetricCourse:
    """Describe a metric in the direction in which it is better."""
    return course_of(series.values, higher_is_better=kind_of(series.name) in HIGHER_IS_BETTER)


def held_out_metrics(run: Run) -> list[Series]:
    """Return what is measured on held-out data: losses and scores of the whole, else of parts."""
    wanted = SCORED | LOSSES | {"fid"}
    names = [
        n
        for n in run.series
        if kind_of(n) in wanted and n.split("/")[1:2] in (["val"], ["test"]) and "@" not in n
    ]
    whole = [n for n in names if n.count("/") == 1] or names
    found = (run.get(n) for n in whole)
    return [s.finite() for s in found if s is not None and len(s.finite()) >= FEWEST]


def main_metrics(run: Run) -> list[Series]:
    """Return all that a run is judged by."""
    reward = run.get("reward/train") or next(iter(run.matching("reward/*")), None)
    rewards = [reward, run.get("reward/val")]
    given = [run.objective(), run.get("accuracy/train"), *rewards]
    told = [s.finite() for s in given if s is not None and len(s.finite()) >= FEWEST]
    return [*told, *held_out_metrics(run)]


def left_best(run: Run) -> Series | None:
    """Return the held-out metric that kept most, where all of them end far below their best."""
    kept: tuple[float, Series] | None = None
    for series in held_out_metrics(run):
        if len(series) < EVALUATIONS or is_counted(series.values):
            continue
        course = course_of_series(series)
        is_left = course.sure_regret > SURELY and course.best_at < TURNED
        regret = course.regret if is_left else 0.0
        if kept is None or regret < kept[0]:
            kept = regret, series
    return kept[1] if kept is not None and kept[0] > LEFT else None


def far_from_best(run: Run) -> tuple[Series, MetricCourse] | None:
    """Return the held-out metric nearest to its best, where even that one ends far from it.

    A loss counts by a third: it may rise by much before any answer changes.
    """
    found: tuple[float, Series, MetricCourse] | None = None
    for series in held_out_metrics(run):
        if len(series) <= FEWEST:
            continue
        course = course_of_series(series)
        weight = 1.0 if kind_of(series.name) in HIGHER_IS_BETTER else 1.0 / 3
        away = weight * (course.end - course.best) / max(abs(course.best), 1e-12)
        if weight < 1.0 and course.end < AT_THE_FLOOR * course.start:
            away = 0.0
        if found is None or away < found[0]:
            found = away, series, course
    return found[1:] if found is not None and found[0] > AWAY else None


def jumpy_loss(run: Run) -> tuple[Series, int, int] | None:
    """Return a held-out loss that keeps jumping up, how often, and of how many evaluations."""
    for series in held_out_metrics(run):
        if kind_of(series.name) not in LOSSES or float(series.values.min()) <= 0.0:
            continue
        ups, count = _jumps(series.values)
        if count >= EVALUATIONS and ups >= OFTEN * count:
            return series, ups, count
    return None


def _jumps(values: Floats) -> tuple[int, int]:
    late = values[len(values) // 3 :]
    if float(np.median(late)) < AT_THE_FLOOR * float(values[0]):
        return 0, len(late)
    return int(np.sum(late[1:] > JUMPS * late[:-1])), len(late) - 1
