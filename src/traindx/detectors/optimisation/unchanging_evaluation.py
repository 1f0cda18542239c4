"""An evaluation gives the very same number again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from traindx.evidence import Finding, Strength, cite
from traindx.examples import decay, flat, join
from traindx.model import Run, Series, make_run
from traindx.registry import detector

ENOUGH_DIGITS = 6  # four printed digits repeat on a plateau; six do not unless nothing moves
REPEATS = 3  # evaluations in a row after the first of their kind
SHARE = 0.3  # of all evaluations; a run that stops right after is only well trained


@detector(
    needs=("loss/val*",),
    suggests=(
        "lr-zero",
        "lr-schedule-misuse",
        "missing-optimizer-step",
        "frozen-parameters",
        "parameters-not-in-optimizer",
        "empty-validation",
    ),
)
def check(run: Run) -> Iterator[Finding]:
    """The validation loss is the same to the last digit, evaluation after evaluation.

    ## What it detects
    Three or more evaluations in a row, up to the end, that give the same value to six digits or
    more.

    ## Why it matters
    Weights that move at all change the last digits. Equal digits show that nothing moves any more:
    the learning rate is gone, or no step reaches the weights.

    ## What to do
    Log the learning rate. If the run learnt before, the schedule has run out; if it never did, look
    for the optimizer step.

    ## When it is wrong
    A loss printed with few digits repeats on any plateau; such series are not judged. A validation
    that reads a cached result repeats too.
    """
    for series in [s for s in (run.get("loss/val"), *run.matching("loss/val/*")) if s is not None]:
        finite = series.finite()
        start = _first_repeat(finite)
        if start is None:
            continue
        yield _finding(finite, start)
        return


def _first_repeat(series: Series) -> int | None:
    """The point from which on all values are equal, where that is telling."""
    if len(series) < REPEATS + 1 or _digits(series) < ENOUGH_DIGITS:
        return None
    changes = np.flatnonzero(np.diff(series.values) != 0)
    start = int(changes[-1]) + 1 if len(changes) else 0
    repeated = len(series) - start
    return start if repeated > REPEATS and repeated >= SHARE * len(series) else None


def _digits(series: Series) -> int:
    """The significant digits with which a series was written."""
    texts = [f"{abs(v):.15e}".split("e")[0].replace(".", "").rstrip("0") for v in series.values]
    return max(map(len, texts), default=0)


def _finding(series: Series, start: int) -> Finding:
    learnt_before = start >= 2
    value = float(series.values[-1])
    says = (
        f"{series.origin.name} is {value:.10g} in all {len(series) - start} evaluations "
        f"since {series.when(start)}"
    )
    return Finding(
        claim=f"The validation loss does not change in any digit since {series.when(start)}",
        strength=Strength.STRONG,
        evidence=(cite(series, says, start, -1, value=value),),
        suggests=_suggests(learnt_before=learnt_before),
        is_symptom=True,
        onset=float(series.steps[start]),
    )


def _suggests(*, learnt_before: bool) -> Mapping[str, Strength]:
    if learnt_before:
        return {"lr-zero": Strength.STRONG, "lr-schedule-misuse": Strength.WEAK}
    return {
        "missing-optimizer-step": Strength.MODERATE,
        "lr-zero": Strength.MODERATE,
        "parameters-not-in-optimizer": Strength.MODERATE,
        "frozen-parameters": Strength.MODERATE,
        "empty-validation": Strength.WEAK,
    }


FIRES = {
    "learnt, then stood still": make_run(
        {"loss/val": join(decay(9, 0.14, 0.065), np.full(11, 0.06503114849))}, axis="epoch"
    ),
    "never moved": make_run({"loss/val": np.full(10, 2.302585125)}, axis="epoch"),
}

SILENT = {
    "near miss: few digits on a plateau": make_run(
        {"loss/val": np.round(join(decay(9), np.full(9, 0.65)), 2)}
    ),
    "a good run": make_run({"loss/val": decay(20)}),
    "a plateau with moving digits": make_run({"loss/val": flat(20, 0.4, noise=1e-5)}),
}
