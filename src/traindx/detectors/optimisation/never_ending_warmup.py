import numpy as np

from traindx.analysis.curves import curve
from traindx.examples import decay, flat, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding

ENOUGH = 8  # points
GREW = 3.0  # times, from the first to the last point
EVEN = 0.25  # of the mean step: a sweep of the rate multiplies it and does not add to it
PASSES = 2.0  # epochs: a run that is not that old may be in its warm-up
GAINED = 0.05  # on the scale of the logarithm: what counts as having learnt


@detector(needs=("lr", "loss"), suggests=("lr-schedule-misuse", "lr-too-low"))
def check(run: Run) -> Findings:
    """The learning rate is still in its warm-up when the run is over.

    ## What it detects
    A learning rate that rises by even steps from the first point to the last, over two epochs or
    more, to several times its first value, while the loss gains next to nothing.

    ## Why it matters
    The schedule was made for many more steps than the run has: the rate it leads to is never
    reached, and the model hardly moves.

    ## What to do
    Give the schedule the steps that the run takes; a warm-up is a few per cent of them.

    ## When it is wrong
    A run that was stopped in its warm-up looks the same. A sweep that looks for a good rate
    multiplies it and is left alone; so is a run that learns.
    """
    rate, loss = run.get("lr"), run.objective()
    if rate is None or loss is None or len(rate.finite()) < ENOUGH or len(loss.finite()) < ENOUGH:
        return
    rate, loss = rate.finite(), loss.finite()
    steps = np.diff(rate.values)
    first, last = float(rate.values[0]), rate.last
    is_even = bool(np.all(steps > 0)) and float(np.ptp(steps)) < EVEN * float(np.mean(steps))
    epochs = rate.steps if rate.axis == "epoch" else rate.epochs
    passes = float(np.ptp(epochs)) if len(epochs) else 0.0
    if not is_even or last < GREW * first or passes < PASSES:
        return
    if curve(loss.values).net_improvement > GAINED:
        return
    yield finding(
        f"The learning rate is still rising when the run ends, at {last:.2g}",
        {"lr-schedule-misuse": Strength.STRONG, "lr-too-low": Strength.WEAK},
        cite(rate, f"{rate.origin.name} rises from {first:.2g} to {last:.2g}", 0, -1, end=last),
        cite(loss, f"{loss.origin.name} ends at {loss.last:.4g}", 0, -1, end=loss.last),
    )


_RISING = np.linspace(1.35e-6, 1.5e-5, 10)
_EPOCHS = np.linspace(0.4, 4.0, 10)
_STUCK = flat(10, 1.386, noise=0.001)

FIRES = {
    "a cycle of many more steps": logged(lr=_RISING, loss_train=_STUCK, steps=_EPOCHS, axis="epoch")
}

SILENT = {
    "near miss: it learns meanwhile": logged(
        lr=_RISING, loss_train=decay(10), steps=_EPOCHS, axis="epoch"
    ),
    "near miss: a sweep of the rate": logged(
        lr=np.geomspace(1e-6, 1e-1, 10), loss_train=_STUCK, steps=_EPOCHS, axis="epoch"
    ),
    "near miss: half an epoch old": logged(
        lr=_RISING, loss_train=_STUCK, steps=_EPOCHS / 8, axis="epoch"
    ),
    "a warm-up that ends": logged(
        lr=np.minimum(_RISING, 5e-6), loss_train=_STUCK, steps=_EPOCHS, axis="epoch"
    ),
}
