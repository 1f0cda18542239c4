"""What every report says of an experiment, and the two curves that it draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

import numpy as np

from traindx.model.findings import Experiment, Trial, Verdict
from traindx.model.run import Origin, Series
from traindx.model.trials import Arm, arms_of, course_of
from traindx.report import words
from traindx.report.drawn_curves import plottable

WILD, CUT = 30.0, 3.0  # times all that the changed command shows: cut from here, to there
MARKS = {Verdict.CONFIRMED: "✓", Verdict.REFUTED: "✗", Verdict.UNDECIDED: "?"}


def rows_of(experiment: Experiment) -> list[tuple[str, str]]:
    """Return what was changed, why the verdict is what it is, and what each side did, labelled."""
    control, changed = arms_of(experiment)
    rows = [("Change", change_of(experiment))] if experiment.change else []
    rows.append(("Why", words.clean(experiment.reason, 400)))
    if experiment.on_top_of:
        names = ", ".join(words.clean(name, 80) for name in experiment.on_top_of)
        rows.append(("On top of", f"the remedies for {names}, in both"))
    if experiment.trials:
        rows += [(arm.label, words.clean(course_of(arm), 400)) for arm in (control, changed)]
    return rows


def change_of(experiment: Experiment) -> str:
    """Return the change in words, and whether it was made in the source."""
    how = " (as a patch of the source)" if experiment.patch else ""
    return f"{words.clean(experiment.change, 300)}{how}"


def ceiling_of(experiment: Experiment) -> float | None:
    """Return where to cut a loss that leaves all bounds, so that the other one can be seen."""
    control, changed = arms_of(experiment)
    tame = [abs(v) for t in changed.trials for v in t.losses if math.isfinite(v)]
    wild = [v for t in control.trials for v in t.losses if math.isfinite(v)]
    if not tame or not wild:
        return None
    bound = max(*tame, abs(wild[0]))
    return CUT * bound if max(wild) > WILD * bound > 0 else None


def curves_of(experiment: Experiment) -> list[Series]:
    """Return the loss of each side, in the middle of its seeds, where there is one."""
    ceiling = ceiling_of(experiment)
    found = (_middle(arm, ceiling) for arm in arms_of(experiment))
    return [plottable(series) for series in found if len(series)]


def series_of(trial: Trial, name: str, ceiling: float | None = None) -> Series:
    """Return the loss of one rerun as a curve; what is above the ceiling lies on it."""
    count = min(len(trial.steps), len(trial.losses))
    losses = np.array(trial.losses[:count], dtype=np.float64)
    if ceiling is not None:
        losses = np.where(np.isfinite(losses), np.minimum(losses, ceiling), losses)
    return Series(
        name,
        losses,
        np.array(trial.steps[:count], dtype=np.float64),
        Origin("experiment", "loss"),
    )


def _middle(arm: Arm, ceiling: float | None) -> Series:
    at: dict[float, list[float]] = {}
    for trial in arm.trials:
        for step, loss in zip(trial.steps, trial.losses, strict=False):
            at.setdefault(step, []).append(loss)
    steps = sorted(at)
    losses = [_median(at[step]) for step in steps]
    return series_of(Trial(False, 0, tuple(steps), tuple(losses)), arm.label, ceiling)


def _median(values: Sequence[float]) -> float:
    broken = [v for v in values if not np.isfinite(v)]
    return broken[0] if broken else median(values)
