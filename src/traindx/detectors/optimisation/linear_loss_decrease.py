from math import log

import numpy as np

from traindx.analysis.metrics.chance import is_line_from_chance
from traindx.analysis.metrics.scores import has_accuracy_risen
from traindx.examples import Floats, decay, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding

CLASSES = range(2, 21)
BESIDE = 0.05  # of ln C, between training and validation
ENOUGH = 10  # evaluations


@detector(needs=("loss/train*", "loss/val*"), suggests=("lr-too-low",))
def check(run: Run) -> Findings:
    """The loss falls in a straight line from the level of guessing and has not got far.

    ## What it detects
    A validation loss that begins at ln C for some number of classes C, falls in a line that does
    not bend over ten epochs or more, and ends less than a third below, with training beside it.

    ## Why it matters
    What a network learns shows as a bend: fast at first, slower later. A line means that the steps
    are far too small for their number.

    ## What to do
    Raise the learning rate tenfold and compare the first epochs.

    ## When it is wrong
    A run that was stopped early on purpose, or a very hard task, begins in the same way; where an
    accuracy rises by ten points and more, nothing is said.
    """
    train, val = run.objective(), run.get("loss/val")
    if train is None or val is None or len(val.finite()) < ENOUGH or len(train.finite()) < ENOUGH:
        return
    val, train = val.finite(), train.finite()
    chance = min((log(c) for c in CLASSES), key=lambda v: abs(v - float(val.values[0])))
    by_epoch = val.axis == "epoch" or len(val.epochs) == len(val)
    if not by_epoch or not is_line_from_chance(val.values, chance):
        return
    if abs(train.last - val.last) > BESIDE * chance or has_accuracy_risen(run):
        return
    first, last = float(val.values[0]), val.last
    says = (
        f"{val.origin.name} falls from {first:.4g} to {last:.4g}; random guessing has {chance:.4g}"
    )
    yield finding(
        "The loss falls slowly in a straight line and is still close to random guessing",
        {"lr-too-low": Strength.MODERATE},
        cite(val, says, 0, -1, start=first, end=last, chance=chance),
        strength=Strength.MODERATE,
    )


def _run(val: Floats, train: Floats) -> Run:
    return logged(loss_val=val, loss_train=train, axis="epoch")


_LINE = np.linspace(0.6937, 0.5941, 12)

FIRES = {"a line that ends early": _run(_LINE, _LINE - 0.008 + 0.004 * np.sin(np.arange(12)))}

SILENT = {
    "learns, with a bend": _run(decay(12, 0.69, 0.1, noise=0.0), decay(12, 0.65, 0.08)),
    "near miss: a slow fall with a bend": _run(
        0.55 + 0.14 * np.exp(-np.arange(12) / 5.0), 0.55 + 0.14 * np.exp(-np.arange(12) / 5.0)
    ),
    "near miss: training is far ahead": _run(_LINE, _LINE - np.linspace(0.0, 0.3, 12)),
    "near miss: more and more answers are right": logged(
        loss_val=_LINE, loss_train=_LINE, accuracy_val=np.linspace(50.0, 74.0, 12), axis="epoch"
    ),
    "near miss: fine-tuning starts low": _run(_LINE - 0.25, _LINE - 0.25),
}
