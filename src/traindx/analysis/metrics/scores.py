"""Accuracies, recalls and other scores: their scale, their course and the classes behind them."""

from collections.abc import Callable, Sequence

import numpy as np

from traindx.analysis.courses.course import course_of, is_counted
from traindx.analysis.curves import curve, running_median, slope_z
from traindx.model.run import Floats, Run, Series

EVALUATIONS = 5  # from the first to the last, all but one of the first two alike
GOOD = 0.9  # an accuracy that high may be the best there is
DIGITS = 3  # of the accuracy: two repeat by chance
MOVED = 1e-3  # of the loss: it changes, and no answer does
GAINED = 0.05  # of the training loss, on the scale of the logarithm
NEVER = 1e-3  # recall or F1
ZERO_REPEATS = 5  # evaluations to the end
SCORED_POINTS = 6  # points
NEAR_ZERO = 0.03  # of the examples
STILL = 0.015  # of the examples, over the whole run
ZERO_EVALUATIONS = 3  # evaluations, all of them zero
LEVEL_PART = 0.4  # of the run that must be flat
RISEN = 0.1  # of all examples: by so much more right answers, it learns
TASK_LOST = 0.3  # of its best value
TASK_GAINED = 0.3  # of its best value that another task gains meanwhile
SURELY = 4.0  # noise levels that a score falls, for its task to be lost
POINTS = 5
SCORED_PHASES = ("train", "val", "test")
RIGHT = 0.9  # of the answers; a loss of nothing leaves no mistakes
LATE_SCORES = 3  # late samples, and evaluations


def is_constant_score(accuracy: Series) -> bool:
    """Tell whether all evaluations but the first agree on a poor value of several digits."""
    if len(accuracy) < EVALUATIONS:
        return False
    value = accuracy.last
    scale = 100.0 if value > 1.5 else 1.0
    digits = len(f"{value / scale:.10f}".split(".")[1].rstrip("0"))
    is_told = max(digits, accuracy.origin.decimals + (2 if scale > 1.0 else 0)) >= DIGITS
    is_same = bool(np.all(accuracy.values[1:] == value))
    return 0 < value < GOOD * scale and is_told and is_same


def is_model_moving(run: Run, loss: Series, phase: str) -> bool:
    """Tell whether the weights move: what is evaluated changes, or training gains.

    The training loss of one batch and the next differs even where they stand still.
    """
    held_out = run.get(f"loss/{phase}") if phase != "train" else None
    if held_out is None or len(held_out.finite()) < EVALUATIONS:
        return curve(loss.values).net_improvement > GAINED
    values = held_out.finite().values
    return float(np.ptp(values)) > MOVED * abs(float(np.median(values)))


def zero_score(run: Run, phase: str) -> Series | None:
    """Return a recall, F1 or precision of a phase that is zero to the end."""
    for kind in ("recall", "f1", "precision"):
        for series in run.matching(f"{kind}/{phase}*"):
            finite = series.finite()
            if len(finite) >= ZERO_REPEATS and bool(np.all(finite.values[-ZERO_REPEATS:] <= NEVER)):
                return finite
    return None


def stays_near_zero(accuracy: Series) -> bool:
    """Tell whether an accuracy is near zero from the first point to the last."""
    values, half = accuracy.values, len(accuracy) // 2
    return (
        len(values) >= SCORED_POINTS
        and float(values.max()) < NEAR_ZERO
        and float(np.ptp(values)) < STILL
        and float(np.mean(values[half:]) - np.mean(values[:half])) < STILL / 3
    )


def are_all(held: Sequence[Series], is_nothing: Callable[[Floats], bool]) -> bool:
    """Tell whether all scores of a kind are nothing: that of a rare class alone may well be."""
    return bool(held) and all(len(s) >= ZERO_EVALUATIONS and is_nothing(s.values) for s in held)


def last_share(series: Series) -> float:
    """Return the last value of a score as a share."""
    last = float(series.values[-1])
    return last / 100 if last > 1.0 else last


def end_level(series: Series) -> float:
    """Return the level at which a score ends."""
    return float(np.median(series.values[-max(1, len(series) // 20) :]))


def level_start(series: Series) -> int:
    """Return the point from which on a score must be flat."""
    return int(len(series) * (1.0 - LEVEL_PART))


def is_level(series: Series) -> bool:
    """Tell whether the last part of a score has no trend."""
    return abs(slope_z(series.values[level_start(series) :])) < 2.0


def has_accuracy_risen(run: Run) -> bool:
    """Tell whether an accuracy ends well above where it began."""
    for accuracy in run.matching("accuracy/*"):
        values = accuracy.finite().values
        whole = 100.0 if len(values) and float(values.max()) > 1.0 else 1.0
        if len(values) and float(values[-1] - values[0]) > RISEN * whole:
            return True
    return False


def forgotten_task(tasks: list[Series]) -> tuple[Series, int, Series] | None:
    """Return a task that was lost, the point of its best score, and the task that rose."""
    for old in tasks:
        smooth = running_median(old.values, 3)
        top = int(np.argmax(smooth))
        end = float(np.median(smooth[-3:]))
        if top > len(smooth) - 4 or end > (1.0 - TASK_LOST) * float(smooth[top]):
            continue
        for new in tasks:
            at = int(np.searchsorted(new.steps, old.steps[top]).clip(0, len(new) - 1))
            gain = float(np.median(new.values[-3:]) - new.values[at])
            if new is not old and gain > TASK_GAINED * float(new.values.max()):
                return old, top, new
    return None


def is_lost_for_sure(lost: Floats, tasks: Sequence[Series], few: int) -> bool:
    """Tell whether the fall of a score is more than the noise of few examples, or of many parts."""
    course = course_of(lost, higher_is_better=True)
    fallen = sum(_is_fallen(task.values) for task in tasks)
    is_common = len(tasks) <= few or 3 * fallen >= len(tasks)
    return not is_counted(lost) and course.sure_regret > SURELY and is_common


def _is_fallen(score: Floats) -> bool:
    course = course_of(score, higher_is_better=True)
    return course.end - course.best > TASK_LOST * abs(course.best)


def is_often_wrong(run: Run) -> bool:
    """Tell whether an accuracy contradicts a loss that is as small as the log's digits."""
    told = [s.finite() for p in SCORED_PHASES if (s := run.get(f"accuracy/{p}")) is not None]
    values = [float(s.values.max()) for s in told if len(s) >= POINTS]
    return bool(values) and max(values) < RIGHT


def held_out_accuracy(run: Run) -> Series | None:
    """Return the accuracy of validation, else of the test, else of training."""
    for phase in ("val", "test", "train"):
        found = run.get(f"accuracy/{phase}")
        if found is not None and len(found.finite()) >= LATE_SCORES:
            return found.finite()
    return None


def best_late_share(accuracy: Series) -> float:
    """The best of the last accuracies, as a share."""
    best = float(accuracy.values[-LATE_SCORES:].max())
    return best / 100.0 if float(accuracy.values.max()) > 1.0 else best


def as_shares(accuracy: Series) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the values of an accuracy as shares."""
    values = accuracy.values
    return values / 100.0 if float(np.max(values)) > 1.5 else values


def nothing_scored(
    run: Run, kinds: Sequence[str], parts: Sequence[str], is_nothing: Callable[[Floats], bool]
) -> Series | None:
    """Return the first score of a kind whose values are all nothing, in these parts of the data."""
    for kind in kinds:
        held = [s for part in parts for s in run.matching(f"{kind}/{part}")]
        if are_all(held, is_nothing):
            return held[0]
    return None
