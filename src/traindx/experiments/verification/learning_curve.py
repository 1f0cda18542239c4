"""Does a run learn, and does one learn more than another? Judged against its own noise.

A loss may be defined differently in two runs (a softmax removed, a sum turned into a mean), so
falls are taken relative to where each run started; levels are compared only where both started
at the same level.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from traindx.analysis.curves import noise, rank_z
from traindx.model.run import Floats, Run

FEWEST = 10  # points; fewer show no course
NOTABLE = 0.05  # of the starting loss; less is no learning whatever the noise
SURE = 4.0  # standard errors
SURE_BY_RANK = 2.3  # the most that 4 against 5 points can reach is 2.45
SURE_BY_RANKS = 3.0  # between the ends of two runs
SUDDEN = 0.2  # of the first loss, where it falls or jumps within the very first steps
SAME_FIRST = 0.01  # first losses this close come from the same weights, batch and loss
SAME_START = 0.10  # starting levels this close are of the same loss
HALF = 0.5  # of the control's fall: a run in train mode shows a higher loss than one in eval mode
OVERFLOWN = 1e30  # a loss beyond it is on its way to infinity
METRIC_LOSS = 0.05  # of an accuracy


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """How a loss went: where it began and ended, how far it fell, and how sure that is.

    `fall` is a share of the starting level and `error` its standard error. A loss that became NaN
    or infinite is broken; one with too few points, or that is not meant to fall, is unknown.
    """

    steps: Floats = field(default_factory=lambda: np.empty(0))
    losses: Floats = field(default_factory=lambda: np.empty(0))
    is_known: bool = False
    is_broken: bool = False
    start: float = float("nan")
    end: float = float("nan")
    fall: float = 0.0
    error: float = 0.0
    end_error: float = 0.0  # of the level at the end, in units of the loss
    is_learning: bool = False

    @property
    def first(self) -> float:
        return float(self.losses[0])

    @property
    def words(self) -> str:
        """Return the course in words."""
        if self.is_broken:
            return "its loss becomes NaN or infinite"
        if not self.is_known:
            return "its loss is not known"
        return f"its loss goes from {self.start:.4g} to {self.end:.4g}"


def course_of(run: Run, most_steps: float | None = None) -> Course:
    """Return the course of a run's training loss, of its first steps if asked for."""
    series = run.objective()
    if series is None or not len(series):
        return Course()
    keep = np.ones(len(series), dtype=bool)
    if most_steps is not None and series.axis == "step":
        keep = series.steps <= most_steps
    return course(series.values[keep], series.steps[keep])


def course(values: Floats, steps: Floats | None = None) -> Course:
    """Describe the course of a loss."""
    at = np.arange(len(values), dtype=np.float64) if steps is None else steps
    if bool(np.any(~np.isfinite(values) | (np.abs(values) > OVERFLOWN))):
        return Course(at, values, is_broken=True)
    count = len(values)
    if count < FEWEST:
        return Course(at, values)
    head = values[: int(np.clip(count // 20, 4, 20))]
    tail = _tail(values)
    sigma = max(noise(values), noise(tail))
    start, end, first = float(np.median(head)), float(np.median(tail)), float(values[0])
    points, is_lower = len(head), rank_z(tail, head) > SURE_BY_RANK
    if abs(first - start) > max(SUDDEN * abs(first), 6.0 * sigma):
        # learnt, or ruined, before a level could be taken: the first loss is of no step at all
        start, points, is_lower = first, 1, bool(end < first)
    scale = max(abs(start), abs(start - end), sigma, 1e-300)
    fall = (start - end) / scale
    error = 1.25 * sigma / scale * float(np.sqrt(1 / points + 1 / len(tail)))
    is_learning = is_lower and fall > max(NOTABLE, SURE * error)
    end_error = 1.25 * sigma / float(np.sqrt(len(tail)))
    return Course(at, values, True, False, start, end, fall, error, end_error, is_learning)


def _tail(values: Floats) -> Floats:
    return values[-int(np.clip(len(values) // 5, 5, 100)) :]


def is_same_loss(changed: Course, control: Course) -> bool:
    """Tell whether both runs start at the same level, so that levels can be compared."""
    if not (changed.is_known and control.is_known):
        return False
    if abs(changed.first - control.first) <= SAME_FIRST * abs(control.first):
        return True
    slack = max(SAME_START, SURE * max(changed.error, control.error))
    return abs(changed.start - control.start) <= slack * max(abs(control.start), abs(changed.start))


def _lead(changed: Course, control: Course, *, is_same: bool) -> tuple[float, float]:
    """Return how much further the changed run came, and by how much it must to be sure.

    Both are shares: of where it started if the loss is the same, else of each one's own start.
    """
    if not is_same:
        sure = SURE * float(np.hypot(changed.error, control.error))
        return changed.fall - control.fall, max(NOTABLE, sure)
    scales = [max(abs(c.start), abs(c.start - c.end), 1e-300) for c in (changed, control)]
    scale = min(scales)  # a run that blew up at first has no level to measure by
    sure = SURE * float(np.hypot(changed.end_error, control.end_error)) / scale
    return (control.end - changed.end) / scale, max(NOTABLE, sure)


def is_better(changed: Course, control: Course, *, is_same: bool | None = None) -> bool:
    """Tell whether the changed run learns, and further than the control by more than noise.

    `is_same` says that the change leaves the loss as it is defined; else that is guessed.
    """
    if not changed.is_learning:
        return False
    if control.is_broken or not control.is_known:
        return True
    is_same = _same(changed, control, is_same)
    lead, sure = _lead(changed, control, is_same=is_same)
    if lead > sure:
        return True
    # a control that swings wildly and learns nothing has large errors, and ranks that tell
    is_apart = is_same and rank_z(_tail(changed.losses), _tail(control.losses)) > SURE_BY_RANKS
    return lead > SUDDEN and not control.is_learning and is_apart


def is_worse(changed: Course, control: Course, *, is_same: bool | None = None) -> bool:
    """Tell whether the changed run learns clearly less than the control."""
    if changed.is_broken:
        return not control.is_broken
    if not (changed.is_known and control.is_known):
        return False
    lead, sure = _lead(changed, control, is_same=_same(changed, control, is_same))
    has_lost = not changed.is_learning or changed.fall < HALF * control.fall
    return control.is_learning and lead < -sure and has_lost


def _same(changed: Course, control: Course, is_same: bool | None) -> bool:
    return is_same_loss(changed, control) if is_same is None else is_same


def has_lost_accuracy(changed: Run, control: Run) -> bool:
    """Tell whether an accuracy that both runs printed is clearly lower in the changed one."""
    for name in ("accuracy/val", "accuracy/train"):
        after, before = changed.get(name), control.get(name)
        if after is None or before is None:
            continue
        last = [
            float(np.median(s.finite().values[-3:])) for s in (after, before) if len(s.finite())
        ]
        if len(last) == 2 and last[0] < last[1] - METRIC_LOSS * _unit(last):
            return True
    return False


def _unit(values: list[float]) -> float:
    return 100.0 if max(values) > 1.5 else 1.0
