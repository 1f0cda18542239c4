"""What a training loss does that none should: no progress, no bottom, up with the learning rate."""

from __future__ import annotations

import numpy as np

from traindx.analysis.courses.course import MetricCourse, course_of
from traindx.analysis.courses.joint import likeness, together
from traindx.model.run import Floats, Run, Series

FEWEST = 8  # points
STILL = 0.02  # of its size: what a loss gains that does not move …
SURE = 4.0  # … and noise levels that it gains
QUICKENS = 2.0  # times: the pace of a fall that has no bottom, late over early
WORSE = 1.15  # times where it began
RISING = 1.2  # times its first value: a learning rate that is warmed up
TOGETHER = 0.4  # rank correlation of a loss and the learning rate that it follows
HIGH = 0.75  # of what it was: a loss that is hardly lower …
RIGHT = 0.5  # … though so many answers are right …
MANY_CLASSES = 1.5  # … of more than a few classes, by the loss of a guess
JUMP = 3.0  # times: a training loss that is suddenly another
UNMOVED = 0.2  # of its level: a validation loss that knows nothing of it
SETTLED, TO_A_THOUSANDTH = 0.25, 2e-3  # of the run, in which a loss moves by less than that


def stands_still(loss: Series) -> MetricCourse | None:
    """Return the course of a loss that ends where it began."""
    if len(loss) < FEWEST:
        return None
    course = course_of(loss.values)
    is_still = abs(course.gain) < STILL and course.sure_gain < SURE
    return course if is_still and course.start - course.best < 3 * STILL * course.size else None


def has_no_bottom(values: Floats) -> bool:
    """Tell whether a loss falls below zero, the faster the further it is."""
    if len(values) < FEWEST or float(values[-1]) >= 0.0:
        return False
    levels = course_of(values).levels
    third = len(levels) // 3
    early, late = float(levels[0] - levels[third]), float(levels[-third - 1] - levels[-1])
    is_far = -float(levels[-1]) > max(abs(float(levels[0])), 1.0)
    return is_far and late > QUICKENS * max(early, 0.0) and late > 0.0


def follows_the_rate(run: Run) -> tuple[Series, Series, float] | None:
    """Return a training loss that rises and falls with the learning rate, that rate, and how alike.

    The loss ends above its start: what the high rate broke, the low one does not mend.
    """
    loss, rate = run.objective(), run.get("lr")
    if loss is None or rate is None or min(len(loss.finite()), len(rate.finite())) < 4:
        return None
    loss, rate = loss.finite(), rate.finite()
    top = int(np.argmax(rate.values))
    if not 0 < top < len(rate) - 1 or float(rate.values[0]) * RISING > float(rate.values[top]):
        return None
    first, last = float(loss.values[0]), float(np.median(loss.values[-2:]))
    pair = together(loss, rate)
    if first <= 0 or last < WORSE * first or pair is None:
        return None
    alike = likeness(*pair)
    is_mended = float(loss.values.max()) > last * 1.05  # it falls again as the rate does
    return (loss, rate, alike) if alike >= TOGETHER and is_mended else None


def high_for_its_accuracy(loss: Floats, accuracy: Floats) -> bool:
    """Tell whether a cross-entropy hardly falls though half the answers come right."""
    if min(len(loss), len(accuracy)) < FEWEST:
        return False
    start, end = float(loss.max()), course_of(loss).end
    right = course_of(accuracy, higher_is_better=True)
    gained = right.told(right.end) - float(accuracy.min())
    is_right = right.told(right.end) >= RIGHT and gained > RIGHT - 0.1
    return start > MANY_CLASSES and HIGH * start < end < start and is_right


def jump_without_validation(train: Series, val: Series) -> int | None:
    """Return where a training loss is suddenly several times as high for good, and val is not."""
    values = train.values
    if len(values) < FEWEST or len(val) < 4 or float(values.min()) <= 0.0:
        return None
    at = int(np.argmax(np.diff(np.log(values)))) + 1
    before, after = values[:at], values[at:]
    is_jump = len(after) >= FEWEST and float(after.min()) > JUMP / 1.5 * float(before.max())
    is_far = float(np.median(after)) > JUMP * float(np.median(before))
    is_unmoved = float(np.ptp(val.values)) < UNMOVED * float(np.median(val.values))
    return at if is_jump and is_far and is_unmoved else None


def settled_since(values: Floats) -> int | None:
    """Return the point from which on a loss moves by less than a few thousandths to the end."""
    if len(values) < 2 * FEWEST:
        return None
    level = float(values[-1])
    moved = np.flatnonzero(np.abs(values - level) > TO_A_THOUSANDTH * abs(level))
    start = int(moved[-1]) + 1 if len(moved) else 0
    return start if 0 < start <= (1.0 - SETTLED) * len(values) else None
