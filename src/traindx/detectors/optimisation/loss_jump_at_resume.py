"""The loss jumps where the run was resumed."""

from collections.abc import Iterator

import numpy as np

from traindx.analysis.curves import rank_z, wander
from traindx.examples import decay, join, make_run
from traindx.model.findings import Evidence, cite, cite_event, finding, suggested
from traindx.model.run import Event, Series
from traindx.registry import Findings, Run, detector

SURE = 6.0  # in units of the run's own noise
NOTABLE = 0.05  # of the loss before


@detector(needs=("loss",), suggests=("resume-without-optimizer-state", "lr-schedule-misuse"))
def check(run: Run) -> Findings:
    """The loss jumps up where the run was resumed.

    ## What it detects
    A place where the step counter goes back or the log says that a checkpoint was loaded, and a
    loss that is clearly higher after it than before.

    ## Why it matters
    Weights alone do not continue a run: without the optimizer's moments, the scheduler's position
    and the scaler's state the first steps undo part of the progress.

    ## What to do
    Save and load the optimizer, scheduler, scaler, step and random state with the weights.

    ## When it is wrong
    A new phase on other data that starts from a checkpoint jumps too.
    """
    raw = run.series.get("loss/train")
    if raw is None or len(raw) < 8 or run.objective() is None:
        return
    for at, evidence in _resumes(run, raw):
        jump = _jump(raw, at)
        if jump is None:
            continue
        before, after = jump
        says = f"{raw.origin.name} went from {before:.4g} to {after:.4g} at {raw.when(at)}"
        yield finding(
            f"The loss jumps where the run was resumed, at {raw.when(at)}",
            suggested(strong="resume-without-optimizer-state", weak="lr-schedule-misuse"),
            cite(raw, says, at, before=before, after=after),
            *evidence,
        )
        return


def _resumes(run: Run, loss: Series) -> Iterator[tuple[int, tuple[Evidence, ...]]]:
    for at in loss.restarts():
        back = f"{loss.axis} goes back from {loss.steps[at - 1]:.0f} to {loss.steps[at]:.0f}"
        yield at, (cite(loss, back, at - 1, at),)
    for event in run.events:
        resumed = loss.position_of(event) if event.kind == "resume" else None
        if resumed is not None and 0 < resumed < len(loss):
            yield resumed, (cite_event(event),)


def _jump(loss: Series, at: int) -> tuple[float, float] | None:
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


_BEFORE, _AFTER = decay(300, 4.0, 2.0, noise=0.01), decay(200, 2.9, 1.9, noise=0.01)

FIRES = {
    "the step goes back and the loss up": make_run(
        {"loss/train": join(_BEFORE, _AFTER)}, steps=join(np.arange(300.0), np.arange(290.0, 490.0))
    ),
    "the log says so": make_run(
        {"loss/train": join(_BEFORE, _AFTER)},
        events=[Event("resume", "Resuming from checkpoint-300", "train.log", "line 301", step=300)],
    ),
}

_SEAMLESS = decay(500, 4.0, 2.0, noise=0.01)

SILENT = {
    "near miss: resumed without a jump": make_run(
        {"loss/train": join(_SEAMLESS[:300], _SEAMLESS[290:490])},
        steps=join(np.arange(300.0), np.arange(290.0, 490.0)),
    ),
    "never resumed": make_run({"loss/train": _SEAMLESS}),
}
