"""An accuracy that counts answers which are exactly right, where no answer can be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx.examples import make_run
from traindx.model.findings import Finding, Strength, cite
from traindx.model.run import Run, Series
from traindx.registry import detector

ENOUGH = 6  # points
NOTHING = 0.03  # of the examples
STILL = 0.015  # of the examples, over the whole run
LEARNT = 0.5  # of its first level: where the loss has come to, or below
SMALL = 0.3  # a cross-entropy this small means that most answers are right


@detector(needs=("accuracy/train", "loss/train"), suggests=("metric-bug", "wrong-loss-for-task"))
def check(run: Run) -> Iterator[Finding]:
    """The accuracy is next to nothing from the first epoch to the last, while the loss falls.

    ## What it detects
    A training accuracy below three in a hundred that does not move, beside a training loss that
    fell to half and is so small that, as a cross-entropy, it would mean that most answers are
    right.

    ## Why it matters
    Training works; only the measure says nothing. A regression is hardly ever right to the last
    digit, and an accuracy that compares labels of another form counts none.

    ## What to do
    For a regression log an error in the unit of the targets. For classes compare the form of the
    predictions and of the labels that the accuracy is given.

    ## When it is wrong
    A squared error on the scores of very many classes is small from the start, and the accuracy
    rises late.
    """
    accuracy, loss = run.get("accuracy/train"), run.get("loss/train")
    if accuracy is None or loss is None or not _says_nothing(accuracy.finite()):
        return
    told = loss.finite()
    if len(told) < ENOUGH or len(told) < len(loss) or float(told.values.min()) < 0:
        return
    first, last = float(told.values[0]), float(np.median(told.values[-3:]))
    if last > min(LEARNT * first, SMALL):
        return
    highest = float(accuracy.finite().values.max())
    yield Finding(
        claim=f"The accuracy is {highest:.2g} at most while the loss falls: it measures nothing",
        strength=Strength.MODERATE,
        evidence=(
            cite(accuracy, f"{accuracy.origin.name} is {highest:.2g} at most", 0, -1, max=highest),
            cite(told, f"{told.origin.name} fell from {first:.3g} to {last:.3g}", 0, -1, end=last),
        ),
        suggests={"metric-bug": Strength.MODERATE, "wrong-loss-for-task": Strength.WEAK},
        is_symptom=True,
        onset=float(accuracy.steps[0]),
    )


def _says_nothing(accuracy: Series) -> bool:
    values, half = accuracy.values, len(accuracy) // 2
    return (
        len(values) >= ENOUGH
        and float(values.max()) < NOTHING
        and float(np.ptp(values)) < STILL
        and float(np.mean(values[half:]) - np.mean(values[:half])) < STILL / 3
    )


_FALLING = np.geomspace(0.16, 0.02, 12)

FIRES = {
    "a regression": make_run(
        {"loss/train": _FALLING, "accuracy/train": np.tile([0.0, 0.0056], 6)}, axis="epoch"
    ),
}

SILENT = {
    "near miss: the accuracy begins to rise": make_run(
        {"loss/train": _FALLING, "accuracy/train": np.linspace(0.001, 0.012, 12)}, axis="epoch"
    ),
    "near miss: a thousand classes, hardly learnt": make_run(
        {"loss/train": np.linspace(6.9, 6.1, 12), "accuracy/train": np.linspace(0.001, 0.004, 12)}
    ),
    "learns": make_run({"loss/train": _FALLING, "accuracy/train": np.linspace(0.5, 0.95, 12)}),
}
