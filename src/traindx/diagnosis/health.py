"""Whether a run is seen to be healthy: that no rule matched is not enough for a clean bill."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx.analysis.courses.course import MetricCourse
from traindx.analysis.courses.doubts import (
    LIKELY,
    doubts,
    gravest,
    probability_of_trouble,
)
from traindx.analysis.courses.main_metrics import (
    course_of_series,
    far_from_best,
    held_out_metrics,
    main_metrics,
)
from traindx.analysis.courses.segments import bursts, lasting_step, period
from traindx.analysis.curves import noise, rank_z
from traindx.analysis.recordings.observations import processes_of
from traindx.model.metric_names import HIGHER_IS_BETTER, LOWER_IS_BETTER, kind_of
from traindx.model.recording import Process
from traindx.model.run import NO_DESCENT, Floats, Run, Series

RARE = 0.02  # of the later points are below the first three: by chance hardly ever …
ENOUGH = 40  # … where there are so many later points
FEW = 3  # points of a curve, below which nothing is seen
SURE = 2.0  # deviations by which the end of a curve lies beyond its beginning
NOTABLE = 0.02  # of its own size, by which a metric has to improve
SHARES = frozenset(
    {"accuracy", "f1", "precision", "recall", "auc", "iou", "dice", "specificity", "em"}
)
PERCENT = 5.0  # up to here a score above 1 is too small for a percentage of anything learnt
BOTTOMLESS = -1e4  # a likelihood of a batch gets there by a sum, a loss that has no minimum too
RECOVERED = 0.2  # of the height of a burst that is left after it
KEPT = 0.1  # of its size: a held-out metric that ends so near to its best
FAR = 0.35  # of its size: a training loss that ends so far from its best …
SURELY = 4.0  # … in noise levels …
TURNED = 0.85  # … that it reached before this part of the run
MANY = 6  # points, of which a course is judged
LOG_LOSS = "log the training loss every few steps"
LOG_HELD_OUT = "evaluate on held-out data every epoch, and log its loss and a score"
LOG_QUALITY = (
    "score samples every few epochs (FID, precision and recall): losses of players say little"
)
LOG_MORE = "pass a log with more points, from the first step to the last"
UNLEARNT = "that the model learns (no loss or score improves beyond its noise)"
HELD_OUT = ("/val", "/test", "/eval")


@dataclass(frozen=True, slots=True)
class Health:
    """What speaks for a run's health, what is odd about it, and what could not be seen."""

    seen: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    learns: bool = False
    wanted: tuple[str, ...] = ()  # what to log, so that more can be seen

    @property
    def is_earned(self) -> bool:
        """Tell whether enough was seen for a clean bill."""
        return self.learns and not self.odd


def health_of(run: Run) -> Health:
    """Judge the health of a run in which no rule found a fault."""
    better = _best_improvement(run)
    seen = [better, *_recoveries(run)] if better else []
    unseen = [] if better else [UNLEARNT]
    log_loss = LOG_QUALITY if run.has("loss/train/*") else LOG_LOSS
    wanted = [] if better or main_metrics(run) else [log_loss]
    if is_evaluated(run):
        seen.append(_best_kept(run) or "it is evaluated")
    else:
        unseen.append("held-out data (no validation metric)")
        wanted.append(LOG_HELD_OUT)
    if not better and max(map(len, main_metrics(run)), default=FEW) < MANY:
        wanted.append(LOG_MORE)
    odd = [*_odd_metrics(run), *_odd_courses(run)]
    odd += [] if odd or not better else _doubts(run)
    odd += [o for p in processes_of(run) for o in _odd_processes(p)]
    return Health(
        tuple(seen), tuple(dict.fromkeys(odd)), tuple(unseen), bool(better), tuple(wanted)
    )


def _ends_far(series: Series, course: MetricCourse) -> str:
    end, best = course.told(course.end), course.told(course.best)
    return f"{series.origin.name} ends at {end:.4g}, at its best it was {best:.4g}"


def _doubts(run: Run) -> list[str]:
    """Say what makes a fault likely although no rule names one."""
    figures = doubts(run)
    probability = probability_of_trouble(figures)
    if probability <= LIKELY:
        return []
    often = f"of labelled runs with such curves, {100 * probability:.0f} % had a fault"
    return [f"{gravest(figures)}; {often}"]


def learns(run: Run) -> bool:
    """Tell whether a metric that counts improves beyond its noise."""
    return bool(_best_improvement(run))


def is_evaluated(run: Run) -> bool:
    """Tell whether held-out data were looked at."""
    return _has_held_out_metric(run) or _evaluates(run)


def _has_held_out_metric(run: Run) -> bool:
    measured = HIGHER_IS_BETTER | LOWER_IS_BETTER
    return any(p in n for n in run.series for p in HELD_OUT if kind_of(n) in measured)


def _odd_courses(run: Run) -> Iterator[str]:
    """Say what metrics that count end where no healthy run leaves them."""
    loss = run.objective()
    for series in [loss.finite()] if loss is not None and len(loss.finite()) >= MANY else []:
        course = course_of_series(series)
        if period(series.values):
            continue  # a schedule with restarts may end anywhere in its cycle
        if (step := lasting_step(series.values)) is not None:
            levels = f"{step[0]:.4g} to {step[1].level:.4g}"
            at = series.when(int(step[1].start * len(series)))
            yield f"{series.origin.name} steps up from {levels} at {at} and does not come back"
        is_far = course.regret > FAR and course.sure_regret > SURELY and course.best_at < TURNED
        if is_far and course.rises_after_best > 0:
            yield _ends_far(series, course)
    if (far := far_from_best(run)) is not None:
        yield _ends_far(*far)
    held_out = [s for s in held_out_metrics(run) if len(s) >= MANY]
    courses = [course_of_series(s) for s in held_out]
    if courses and all(c.gain < -NOTABLE and c.sure_gain < -SURELY for c in courses):
        names = ", ".join(s.origin.name for s in held_out[:3])
        yield f"{names} end worse than they began"
    for series in held_out:
        if kind_of(series.name) in SHARES and not bool(series.values.any()):
            yield f"{series.origin.name} is 0 at all {len(series)} evaluations"


def _best_improvement(run: Run) -> str:
    """Say which of the metrics that count improves most surely; empty where none does."""
    found = [(s, change) for s in _that_count(run) if (change := _improvement(s)) > 0]
    if not found:
        return ""
    series = max(found, key=lambda pair: pair[1])[0]
    first, last = _compared(series)
    levels = f"from {float(np.median(first)):.4g} to {float(np.median(last)):.4g}"
    return f"{series.origin.name} goes {levels}"


def _recoveries(run: Run) -> list[str]:
    """Say of what bursts of the loss the run has recovered."""
    loss = run.objective()
    found = [] if loss is None else bursts(loss.finite().values)
    if not found or any(b.left > RECOVERED for b in found):
        return []
    count = f"{len(found)} bursts" if len(found) > 1 else "one burst"
    return [f"it recovers from {count}"]


def _that_count(run: Run) -> list[Series]:
    """Return the metrics that a run is judged by, or else all that are meant to improve."""
    main = main_metrics(run)
    if main:
        return main
    named = [(s, {*re.split(r"[/_ ]+", s.name)}) for s in _judged(run)]
    return [s for s, words in named if not words & NO_DESCENT]


def _best_kept(run: Run) -> str:
    """Say how near to its best a held-out metric ends."""
    kept = [(course_of_series(s), s) for s in held_out_metrics(run) if len(s) > FEW]
    if not kept:
        return ""
    course, series = min(kept, key=lambda pair: pair[0].regret)
    if course.regret > KEPT:
        return ""
    told = f"{course.told(course.end):.4g}, its best is {course.told(course.best):.4g}"
    return f"{series.origin.name} ends at {told}"


def _judged(run: Run) -> Iterator[Series]:
    for name, series in run.series.items():
        if kind_of(name) in HIGHER_IS_BETTER | LOWER_IS_BETTER and len(series) >= FEW:
            yield series


def _improvement(series: Series) -> float:
    """Return by how much of its size a metric gets better for sure; 0 where it does not."""
    values = series.values[np.isfinite(series.values)]
    if len(values) < FEW:
        return 0.0
    sign = _sign(series)
    first, last = (sign * part for part in _compared(series))
    gain = float(np.median(last) - np.median(first))
    size = max(abs(float(np.median(first))), abs(float(np.median(last))), 1e-12)
    is_sure = gain > NOTABLE * size and _is_sure(sign * values, first, last, gain)
    return gain / size if is_sure else 0.0


def _sign(series: Series) -> float:
    return 1.0 if kind_of(series.name) in HIGHER_IS_BETTER else -1.0


def _compared(series: Series) -> tuple[Floats, Floats]:
    """Return the beginning and the end of a curve; most may come within the first steps."""
    values = series.values[np.isfinite(series.values)]
    first, last = _ends(values)
    return (values[:FEW] if _is_at_once(_sign(series) * values) else first), last


def _ends(values: Floats) -> tuple[Floats, Floats]:
    """Return the first and the last fifth of a curve."""
    part = max(1, len(values) // 5)
    return values[:part], values[-part:]


def _is_at_once(values: Floats) -> bool:
    """Tell whether a curve begins where it hardly ever comes again."""
    rest = values[len(values) // 5 :]
    return len(rest) >= ENOUGH and bool(np.all(values[:FEW] < np.quantile(rest, RARE)))


def _is_sure(values: Floats, first: Floats, last: Floats, gain: float) -> bool:
    if len(first) >= FEW:
        return rank_z(first, last) > SURE
    return gain > SURE * noise(values)


def _odd_metrics(run: Run) -> Iterator[str]:
    for series in _judged(run):
        finite = series.values[np.isfinite(series.values)]
        kind, name = kind_of(series.name), series.origin.name
        last = float(finite[-1]) if len(finite) else 0.0
        if kind in SHARES and 1.0 + NOTABLE < float(finite.max(initial=0.0)) < PERCENT:
            yield f"{name} ends at {last:.4g}, more than 1 as a share and next to 0 as a percentage"
        if kind == "loss" and last < BOTTOMLESS:
            yield f"{name} falls to {last:.4g} and seems to have no minimum"


def _odd_processes(process: Process) -> Iterator[str]:
    grads = [g for sample in process.samples for g in sample.grad_norms]
    if grads and all(g is None for g in grads):
        yield "no parameter ever had a gradient in the steps that were looked at"
    pairs = [p for s in process.samples for p in zip(s.names, s.has_moved, strict=False)]
    still = {name for name, has_moved in pairs if has_moved is False}
    moved = {name for name, has_moved in pairs if has_moved}
    if still and not moved:
        yield "no weight moved in the steps that were looked at"


def _evaluates(run: Run) -> bool:
    return any(e for p in processes_of(run) for e in p.evaluations if not e.is_training)
