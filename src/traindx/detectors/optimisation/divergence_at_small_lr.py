import numpy as np

from traindx.analysis.curves import is_broken_curve
from traindx.analysis.metrics.learning_rates import highest_rate
from traindx.examples import decay, join, logged
from traindx.registry import Findings, Run, Strength, detector, finding

SMALL = 1e-5  # what large pre-trained models are fine-tuned with
TINY = 1e-6  # no network is known to diverge from steps of this size


@detector(needs=("lr|config", "loss"), suggests=())
def check(run: Run) -> Findings:
    """The loss breaks down although the learning rate is very small.

    ## What it detects
    A divergence or NaN in a run whose learning rate never exceeded 1e-5.

    ## Why it matters
    It speaks against the usual suspect: look at the data and at the operations instead.

    ## What to do
    Nothing by itself; it lowers the rank of the learning rate among the causes.

    ## When it is wrong
    Weights in half precision, or a schedule in other units, can make a small rate a large one.
    """
    loss = run.objective()
    if loss is None or not is_broken_curve(loss.values):
        return
    told = highest_rate(run)
    if told is None or told[0] > SMALL:
        return
    rate, evidence = told
    yield finding(
        f"The learning rate is at most {rate:.2g}, too small to explain the divergence",
        {},
        evidence,
        strength=Strength.WEAK,
        against={"lr-too-high": Strength.STRONG if rate <= TINY else Strength.MODERATE},
        is_symptom=False,
    )


_BROKEN = join(decay(60), np.full(20, np.nan))

FIRES = {"NaN at 1e-6": logged(loss_train=_BROKEN, lr=np.full(80, 1e-6))}

SILENT = {
    "NaN at an ordinary rate": logged(loss_train=_BROKEN, lr=np.full(80, 1e-3)),
    "near miss: small, and healthy": logged(loss_train=decay(80), lr=np.full(80, 1e-6)),
}
