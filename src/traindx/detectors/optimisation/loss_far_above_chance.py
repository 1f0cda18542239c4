from math import log
from statistics import median

import numpy as np

from traindx.analysis.recordings.loss_labels import classes_of_only_loss
from traindx.analysis.recordings.observations import processes_of
from traindx.examples import LossInput, Summary, recorded, sampled
from traindx.registry import Findings, Run, cite, detector, finding, suggested

ENOUGH = 40  # points of the loss
MANY = 2  # classes
STARTS = 2.0  # times the loss of a guess, at most
STAYS = 3.0  # times it, at least, in the middle half of the run
BEGINNING = 3  # points
CAUSES = suggested(strong="lr-too-high", weak="missing-warmup missing-gradient-clipping")


@detector(needs=("recording", "loss"), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The cross-entropy climbs from that of a guess to several times that, and falls back late.

    ## What it detects
    A single cross-entropy that begins and ends near the logarithm of the number of classes, and in
    the middle half of the run is three times that and more.

    ## Why it matters
    To answer at random would be better. Only steps that are too large carry a model there, and
    a schedule that lowers the rate to zero brings the loss back to that of a guess, where the curve
    seems to fall.

    ## What to do
    Lower the learning rate tenfold; with attention or deep stacks warm it up and clip gradients.

    ## When it is wrong
    Labels that change their meaning in the middle of a run do the same for a while.
    """
    loss = run.objective()
    classes = {c for p in processes_of(run) for s in p.samples for c in classes_of_only_loss(s)}
    if loss is None or len(classes) != 1 or max(classes) < MANY:
        return
    told, guess = loss.finite(), log(max(classes))
    values = told.values
    if len(values) < ENOUGH:
        return
    first = median(values[:BEGINNING].tolist())
    quarter = len(values) // 4
    middle = float(np.median(values[quarter:-quarter]))
    last = median(values[-BEGINNING:].tolist())
    if max(first, last) > STARTS * guess or middle < STAYS * guess or len(told) < len(loss):
        return
    says = f"{told.origin.name} begins at {first:.4g} and is {middle:.4g} in the middle of the run"
    yield finding(
        f"The loss rises to {middle / guess:.3g} times that of random guessing among "
        f"{max(classes)} classes",
        CAUSES,
        cite(told, says, 0, quarter, first=first, middle=middle, guess=guess),
    )


def _run(values: np.ndarray, *, losses: int = 1) -> Run:
    given = LossInput("cross_entropy", "addmm", Summary(shape=(32, 10)), classes=10)
    return recorded(sampled(5, loss=2.3, losses=(given,) * losses), loss_train=values)


_UP = np.concatenate([np.geomspace(2.3, 300, 40), np.geomspace(300, 2.6, 80)])

FIRES = {"climbs and comes back": _run(_UP)}

SILENT = {
    "near miss: climbs and stays, which is a divergence": _run(_UP[:60]),
    "near miss: ends in NaN": _run(np.concatenate([_UP, [np.nan]])),
    "learns": _run(np.geomspace(2.3, 0.1, 120)),
    "near miss: an untrained model out of scale": _run(np.geomspace(90, 0.1, 120)),
    "near miss: a spike": _run(np.concatenate([np.full(30, 2.2), _UP[:40], np.full(90, 1.0)])),
    "near miss: one of several terms": _run(_UP, losses=2),
}
