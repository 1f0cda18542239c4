"""The training loss is the same number, epoch after epoch."""

from dataclasses import replace

import numpy as np

from traindx.examples import decay, flat, join, make_run
from traindx.model.findings import cite, finding, suggested
from traindx.model.run import Series
from traindx.registry import Findings, Run, detector

ENOUGH_DIGITS = 4  # the mean over an epoch repeats in three digits on any plateau
EPOCHS = 6  # in a row, up to the end
STEP_DIGITS = 6  # no two batches agree so far; a bar that repeats an epoch's value shows fewer
STEPS = 10  # in a row, up to the end
MANY_STEPS = 40  # of which nearly all have one value; the last batch of a pass may be another
NEARLY_ALL = 0.9
SHARE = 0.8  # of the run: a run that learnt first and then stands still has converged
LEARNT = 0.05  # of the first value; what was gained before the loss stood still


@detector(
    needs=("loss",),
    suggests=(
        "missing-optimizer-step", "lr-zero", "parameters-not-in-optimizer", "frozen-parameters",
        "dead-relu", "saturated-activations", "representation-collapse",
    ),
)  # fmt: skip
def check(run: Run) -> Findings:
    """The training loss is the same to the last digit from the first epochs to the end.

    ## What it detects
    The loss of six or more epochs in a row, most of the run and up to its end, that is equal in
    every printed digit, of which there are at least four; or of ten or more steps, in six digits;
    or of nine in ten of forty or more steps, from the first on.

    ## Why it matters
    Weights that move change the last digits of a mean over an epoch, and batches differ. Either no
    step reaches them, or the model gives every input the same saturated answer and no gradient is
    left.

    ## What to do
    Compare a weight before and after one step. If it moves, look at the outputs of the last layers:
    dead or saturated units give one answer for all inputs.

    ## When it is wrong
    A progress bar that shows the value of the last epoch repeats it; only values of different
    epochs are compared, or of steps in more digits than a bar shows.
    """
    loss = run.objective()
    if loss is None:
        return
    by_epoch = _by_epoch(loss.finite())
    if by_epoch is not None and len(by_epoch) >= EPOCHS:
        yield from _stands(by_epoch, "epoch", EPOCHS, ENOUGH_DIGITS)
    elif not _has_no_gradient(run):
        yield from _stands(_by_step(loss.finite()), "step", STEPS, STEP_DIGITS)
    if not _has_no_gradient(run):
        usual = _usual(_by_step(loss.finite()))
        yield from _stands(usual, "step", MANY_STEPS, STEP_DIGITS, often="nearly every")


def _stands(finite: Series, unit: str, least: int, digits: int, often: str = "every") -> Findings:
    if len(finite) < least or finite.last == 0.0:
        return
    changes = np.flatnonzero(np.diff(finite.values) != 0)
    start = int(changes[-1]) + 1 if len(changes) else 0
    lasts = len(finite) - start
    gained = float(finite.values[0]) - finite.last
    is_learnt = abs(gained) > LEARNT * abs(float(finite.values[0]))
    if lasts < max(least, SHARE * len(finite)) or is_learnt or _digits(finite) < digits:
        return
    value = finite.last
    says = f"{finite.origin.name} is {value:.6g} in {lasts} {unit}s"
    yield finding(
        f"The training loss is {value:.6g} in {often} {unit} since {finite.when(start)}",
        suggested(
            moderate="missing-optimizer-step lr-zero parameters-not-in-optimizer frozen-parameters "
            "dead-relu saturated-activations",
            weak="representation-collapse",
        ),
        cite(finite, says, start, -1, value=value),
    )


def _usual(loss: Series) -> Series:
    """Return the points at the one value that nearly all have, from the first on, if there is one.

    Batches differ, so their losses do, unless every input gets the same answer: a triplet loss at
    its margin, a cross-entropy at that of a guess.
    """
    values = loss.values
    if len(values) < MANY_STEPS:
        return loss.take(np.empty(0, dtype=int))
    usual = float(np.median(values))
    same = np.flatnonzero(np.isclose(values, usual, rtol=1e-6, atol=0.0))
    is_one = len(same) >= NEARLY_ALL * len(values) and same[0] == 0 and same[-1] >= len(values) - 2
    if not is_one or len(same) == len(values):  # without an exception it is told above
        return loss.take(np.empty(0, dtype=int))
    return replace(loss.take(same), values=np.full(len(same), usual))


def _has_no_gradient(run: Run) -> bool:
    """Tell whether the gradient norm is zero to the end, of which this loss is a mere sign."""
    norm = run.get("grad_norm")
    values = np.empty(0) if norm is None else norm.finite().values[-STEPS:]
    return len(values) > 0 and not bool(values.any())


def _by_step(loss: Series) -> Series:
    """Return one point of every step."""
    return loss.take(np.flatnonzero(np.diff(loss.steps, append=np.inf) != 0))


def _by_epoch(loss: Series) -> Series | None:
    """Return the last point of every epoch, where the epochs are known."""
    epochs = loss.steps if loss.axis == "epoch" else loss.epochs
    if len(epochs) != len(loss) or not len(loss) or not bool(np.all(np.isfinite(epochs))):
        return None
    whole = np.floor(epochs)
    return loss.take(np.flatnonzero(np.append(np.diff(whole) != 0, True)))


def _digits(series: Series) -> int:
    """The significant digits with which a series was written."""
    texts = [f"{abs(v):.12e}".split("e")[0].replace(".", "").rstrip("0") for v in series.values]
    return max(map(len, texts), default=0)


FIRES = {
    "stands from the second epoch on": make_run(
        {"loss/train": join([1.9112], np.full(9, 1.9105))}, axis="epoch"
    ),
    "ten batches alike": make_run({"loss/train": np.full(12, 10.8259)}),
    "nearly all batches alike": make_run(
        {"loss/train": np.where(np.arange(120) % 30 == 29, 0.2, 0.4000000059)}
    ),
    "never moves": make_run({"loss/train": np.full(8, 7.6246)}, axis="epoch"),
}

SILENT = {
    "near miss: learnt, then stands still": make_run(
        {"loss/train": join(decay(3), np.full(20, 0.4871))}, axis="epoch"
    ),
    "near miss: few digits": make_run({"loss/train": np.full(10, 0.69)}, axis="epoch"),
    "near miss: there is no gradient, which says more": make_run(
        {"loss/train": np.full(12, 2.56495), "grad_norm": np.zeros(12)}
    ),
    "near miss: nearly all alike in few digits": make_run(
        {"loss/train": np.where(np.arange(120) % 30 == 29, 0.2, 0.4)}
    ),
    "near miss: learnt, then nearly all alike": make_run(
        {"loss/train": join(decay(40), np.full(160, 0.487123456))}
    ),
    "near miss: never a number": make_run({"loss/train": np.full(12, np.nan)}),
    "near miss: a bar that shows the last epoch's value": make_run(
        {"loss/train": np.full(40, 0.4871)}
    ),
    "a plateau with moving digits": make_run(
        {"loss/train": flat(12, 1.9, noise=1e-3)}, axis="epoch"
    ),
    "a healthy run": make_run({"loss/train": decay(20)}, axis="epoch"),
}
