"""The loss steps up where the data or the curriculum changes."""

from collections.abc import Iterator

import numpy as np

from traindx.analysis.curves import divergence, rank_z, running_median, wander
from traindx.examples import decay, join, make_run
from traindx.model.findings import Evidence, Strength, cite, cite_event, cite_setting, finding
from traindx.model.run import Event, Floats, Series, as_number
from traindx.registry import Findings, Run, detector

SURE = 6.0  # in units of the noise between levels
NOTABLE = 0.05  # of the loss before the step
BESIDE = 0.03  # of the run, between the step and the boundary that explains it
CURRICULUM_WORDS = ("curriculum", "stage", "phase", "switch", "unfreeze", "boundary", "milestone")


@detector(needs=("loss",), suggests=("data-distribution-change",))
def check(run: Run) -> Findings:
    """The loss steps up at a data or curriculum boundary.

    ## What it detects
    A sudden, lasting rise of the level of the training loss at the place of a boundary that the log
    or the config tells of: a curriculum stage, a new data set, a sequence length, an unfreezing.

    ## Why it matters
    New data has another loss: the step itself is no fault. It becomes one when the model does not
    learn the new data, or when the rate is too high for it.

    ## What to do
    Report the loss per data source; lower the learning rate or mix old data in at the boundary.

    ## When it is wrong
    A boundary that happens to lie beside a divergence explains nothing; the gradient norm tells.
    """
    loss = run.objective()
    if loss is None or len(loss.finite()) < 8:
        return
    finite = loss.finite()
    for boundary, evidence in _boundaries(run, finite):
        step = _step_up(finite, boundary)
        if step is None:
            continue
        before, after = step
        goes_on = _goes_on(loss)
        where = finite.when(boundary)
        says = f"{finite.origin.name} stepped from {before:.4g} to {after:.4g} at {where}"
        yield finding(
            f"The loss steps up where the training data changes, at {where}",
            {"data-distribution-change": Strength.STRONG},
            cite(finite, says, boundary, before=before, after=after),
            evidence,
            strength=Strength.MODERATE if goes_on else Strength.WEAK,
            is_symptom=goes_on,
        )
        return


def _goes_on(loss: Series) -> bool:
    """Tell whether training goes on; where it does not, the divergence is the symptom."""
    found = divergence(loss.finite().values)
    return bool(loss.is_finite[-1]) and (found is None or found.is_recovering)


def _boundaries(run: Run, loss: Series) -> Iterator[tuple[int, Evidence]]:
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


def _step_up(loss: Series, at: int) -> tuple[float, float] | None:
    """The levels on both sides of a boundary, where the loss steps up for good right there."""
    values = loss.values
    width = int(np.clip(BESIDE * len(values), 2, 50))
    before, after = values[max(0, at - width) : at], values[at : at + 2 * width]
    if len(before) < 2 or len(after) < 2:
        return None
    low, high = float(np.median(before)), float(np.median(after))
    scatter = max(wander(running_median(values, 3)), 1e-12)
    is_step = high - low > SURE * scatter and high - low > NOTABLE * abs(low)
    is_sure = len(before) < 5 or rank_z(before, after) > 3.0
    return (low, high) if is_step and is_sure else None


_STEP = join(decay(300, 6.0, 4.0, noise=0.01), decay(200, 5.2, 4.4, noise=0.01))
_EVENT = Event("boundary", "curriculum stage 2", "train.log", "line 301", step=300)

FIRES = {"a curriculum stage": make_run({"loss/train": _STEP}, events=[_EVENT])}

SILENT = {
    "a boundary without a step": make_run({"loss/train": decay(500)}, events=[_EVENT]),
    "near miss: a step without a boundary": make_run({"loss/train": _STEP}),
}
