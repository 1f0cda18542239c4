"""Jumps of a loss: at a resume, at a boundary of the data, or in the middle of a run."""

from collections.abc import Iterator

import numpy as np

from traindx.analysis.curves import Divergence, divergence, rank_z, running_median, slope_z, wander
from traindx.model.findings import Evidence, cite, cite_event, cite_setting
from traindx.model.run import Floats, Run, Series, as_number

LEARNT = 0.4  # of its start: where the loss was just before the jump, or lower
ABOVE = 1.5  # times its start: new data cost more than no training at all
LEARNT_AGAIN = 0.5  # of the jump that is gained back after it
LOST = 0.1  # of the metric, from just before the jump to just after it
SWAPPED = 0.5  # of the held-out loss, from just before the jump to just after it …
RISEN = 1.5  # … and how far it is above that at the end
INSIDE = 0.1  # of the run, on either side of the jump
SURE = 6.0  # in units of the run's own noise
NOTABLE = 0.05  # of the loss before
SURE_STEP = 6.0  # in units of the noise between levels
NOTABLE_STEP = 0.05  # of the loss before the step
BESIDE = 0.03  # of the run, between the step and the boundary that explains it
CURRICULUM_WORDS = ("curriculum", "stage", "phase", "switch", "unfreeze", "boundary", "milestone")
JUMP = 3.0  # times the loss just before
NEARBY = 0.05  # of the run: in how many points before and after a jump a loss is judged
LEARNT_FIRST = 0.2  # of the run: before that, a rise may be a warm-up or a queue that fills
MANY_POINTS = 20  # in each half of the climb, to tell a climb from a step
GOES_ON = 0.25  # of the whole rise that the second half of the climb adds
SURELY_RISING = 4.0  # Mann-Kendall, over the second half


def jump_above_start(values: Floats) -> int | None:
    """The point at which a loss that was learnt is suddenly above its start, to be learnt again."""
    at = int(np.argmax(np.diff(values))) + 1
    edge = INSIDE * len(values)
    before, top = float(np.min(values[max(0, at - 2) : at])), float(values[at])
    start, after = float(values[0]), values[at + 1 :]
    if not edge <= at <= len(values) - 1 - edge or not len(after) or start <= 0:
        return None
    is_jump = before < LEARNT * start and top > ABOVE * start
    is_learnt = top - float(after.min()) > LEARNT_AGAIN * (top - before)
    return at if is_jump and is_learnt else None


def _after(loss: Series, at: int, metric: Series) -> int:
    """The first evaluation after the jump; 0 where there is none."""
    when = _moments(loss)[[at - 1, at]]
    here = int(np.searchsorted(_moments(metric), when[1], side="left"))
    return here if len(metric) >= 4 and when[0] <= when[1] and here < len(metric) else 0


def drop_after(metric: Series, loss: Series, at: int) -> int | None:
    """The evaluation after the jump, where it is worse and none after it is better than before."""
    here = _after(loss, at, metric)
    before = float(metric.values[here - 1]) if here else 0.0
    is_lost = here > 0 and float(metric.values[here]) < (1.0 - LOST) * before
    return here if is_lost and float(metric.values[here:].max()) <= before else None


def swap_after(held_out: Series, loss: Series, at: int) -> int | None:
    """The evaluation after the jump, where the held-out loss falls as that of training rises.

    Of a mixture of old and new data the new half was unknown and costs less now; once the new is
    learnt, the old is what costs.
    """
    here = _after(loss, at, held_out)
    if not 0 < here < len(held_out) - 1:
        return None
    before, after = float(held_out.values[here - 1]), float(held_out.values[here])
    is_swapped = 0 < after < SWAPPED * before
    return here if is_swapped and float(held_out.values[-1]) > RISEN * after else None


def _moments(series: Series) -> Floats:
    """When the points are, in epochs where they are known."""
    has_epochs = series.axis != "epoch" and len(series.epochs) == len(series)
    return series.epochs if has_epochs else series.steps


def resumes(run: Run, loss: Series) -> Iterator[tuple[int, tuple[Evidence, ...]]]:
    """Yield the points at which a run was resumed, and what says so."""
    for at in loss.restarts():
        back = f"{loss.axis} goes back from {loss.steps[at - 1]:.0f} to {loss.steps[at]:.0f}"
        yield at, (cite(loss, back, at - 1, at),)
    for event in run.events:
        resumed = loss.position_of(event) if event.kind == "resume" else None
        if resumed is not None and 0 < resumed < len(loss):
            yield resumed, (cite_event(event),)


def jump_at_resume(loss: Series, at: int) -> tuple[float, float] | None:
    """The loss before and after a resume, compared at the same steps where they overlap."""
    values = loss.values
    width = int(np.clip(0.03 * len(values), 3, 30))
    reached = loss.steps[:at] <= loss.steps[at] if at < len(values) else np.zeros(at, dtype=bool)
    end = int(np.flatnonzero(reached)[-1]) + 1 if reached.any() else at
    before, after = values[max(0, end - width) : end], values[at : at + width]
    before, after = before[np.isfinite(before)], after[np.isfinite(after)]
    if len(before) < 3 or len(after) < 3:
        return None
    low, high = float(np.median(before)), float(np.median(after))
    scatter = max(wander(values[np.isfinite(values)]), 1e-12)
    is_jump = high - low > SURE * scatter and high - low > NOTABLE * abs(low)
    return (low, high) if is_jump and rank_z(before, after) > 1.9 else None


def goes_on(loss: Series) -> bool:
    """Tell whether training goes on; where it does not, the divergence is the symptom."""
    found = divergence(loss.finite().values)
    return bool(loss.is_finite[-1]) and (found is None or found.is_recovering)


def boundaries(run: Run, loss: Series) -> Iterator[tuple[int, Evidence]]:
    """Points of the loss at which an artifact says that the data or the task changed."""
    for event in run.events:
        position = loss.position_of(event) if event.kind == "boundary" else None
        if position is not None and 0 < position < len(loss):
            yield position, cite_event(event)
    for setting in run.config.settings:
        number = as_number(setting.value)
        if number is None or not any(w in setting.key.lower() for w in CURRICULUM_WORDS):
            continue
        axis = _axis(loss, "epoch" if "epoch" in setting.key.lower() else "step")
        if axis is not None and float(axis[0]) < number < float(axis[-1]):
            yield int(np.searchsorted(axis, number)), cite_setting(setting)


def _axis(loss: Series, name: str) -> Floats | None:
    if loss.axis == name:
        return loss.steps
    return loss.epochs if name == "epoch" and len(loss.epochs) else None


def step_up(loss: Series, at: int) -> tuple[float, float] | None:
    """The levels on both sides of a boundary, where the loss steps up for good right there."""
    values = loss.values
    width = int(np.clip(BESIDE * len(values), 2, 50))
    before, after = values[max(0, at - width) : at], values[at : at + 2 * width]
    if len(before) < 2 or len(after) < 2:
        return None
    low, high = float(np.median(before)), float(np.median(after))
    scatter = max(wander(running_median(values, 3)), 1e-12)
    is_step = high - low > SURE_STEP * scatter and high - low > NOTABLE_STEP * abs(low)
    is_sure = len(before) < 5 or rank_z(before, after) > 3.0
    return (low, high) if is_step and is_sure else None


def jump_between(loss: Series, first: int, last: int) -> int | None:
    """The point between two steps at which the loss is suddenly several times as high."""
    values = loss.values
    part = max(3, round(NEARBY * len(values)))
    inside = np.flatnonzero((loss.steps > first) & (loss.steps <= last))
    for at in inside:
        before, after = values[max(0, at - part) : at], values[at : at + part]
        if len(before) < 3 or len(after) < 3 or np.median(before) <= 0:
            continue
        if values[at] > JUMP * before.max() and np.median(after) > JUMP * np.median(before):
            return int(at)
    return None


def climbs_on(loss: Series, found: Divergence) -> bool:
    """Tell a climb that goes on to the end from a step to another level.

    Other data or one bad update lift the loss once; only steps that are too large keep lifting it.
    """
    if found.best < LEARNT_FIRST * len(loss):
        return False
    rest = loss.values[found.onset :]
    half = len(rest) // 2
    if half < MANY_POINTS:
        return False
    gained = float(np.median(rest[half:]) - np.median(rest[:half]))
    share = gained / (found.end_value - found.best_value)
    return share > GOES_ON and slope_z(rest[half:]) > SURELY_RISING
