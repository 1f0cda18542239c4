"""Most of each step is spent waiting for data."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from traindx.evidence import Finding, Strength, cite
from traindx.examples import flat
from traindx.model import Run, Series, make_run
from traindx.registry import detector

WAITING = re.compile(r"(^|[/_ ])(data|load|loader|fetch|dataload)", re.IGNORECASE)
WHOLE = re.compile(r"(^|[/_ ])(batch|step|iter|iteration|time/time|total)", re.IGNORECASE)
BOUND = 0.4  # of the step
ENOUGH = 10  # points


@detector(needs=("time/*",), suggests=("data-loading-bound",))
def check(run: Run) -> Iterator[Finding]:
    """The logged time for data is a large part of the logged time per step.

    ## What it detects
    A time for data and a time for the whole step, as many loops print them, of which the first is
    40 % or more of the second (medians, the first points left out).

    ## Why it matters
    The device waits that long in every step.

    ## What to do
    More workers, pinned memory, prefetching, cheaper or cached preprocessing, larger reads.

    ## When it is wrong
    Some loops log the data time as part of another unit or summed over workers; the two must be of
    one kind. Where it exceeds the whole step, nothing is said.
    """
    waiting = _pick(run, WAITING)
    whole = _pick(run, WHOLE)
    if waiting is None or whole is None or waiting.name == whole.name:
        return
    first, second = _level(waiting), _level(whole)
    share = first / second if second > 0 else 0.0
    if not BOUND <= share <= 1.0:
        return
    says = f"{waiting.origin.name} is {first:.3g} of {whole.origin.name} {second:.3g} (medians)"
    yield Finding(
        claim=f"Each step spends {share:.0%} of its time waiting for data",
        strength=Strength.STRONG,
        evidence=(cite(waiting, says, 0, -1, waiting=first, whole=second),),
        suggests={"data-loading-bound": Strength.STRONG},
        shows="data-loading-bound",
        is_symptom=True,
        onset=float(waiting.steps[0]),
    )


def _pick(run: Run, pattern: re.Pattern[str]) -> Series | None:
    for name, series in run.series.items():
        is_time = name.startswith("time/") and pattern.search(name.removeprefix("time/"))
        if is_time and "val" not in name and len(series.finite()) >= ENOUGH:
            return series.finite()
    return None


def _level(series: Series) -> float:
    values = series.values[len(series) // 10 :]  # the first batches start the workers
    return float(np.median(values))


def _run(data: float, batch: float) -> Run:
    return make_run({"time/data_time": flat(50, data), "time/batch_time": flat(50, batch)})


FIRES = {"four fifths": _run(0.4, 0.5)}

SILENT = {
    "hidden behind compute": _run(0.01, 0.5),
    "near miss: a fifth": _run(0.1, 0.5),
    "no whole step known": make_run({"time/data_time": flat(50, 0.4)}),
}
