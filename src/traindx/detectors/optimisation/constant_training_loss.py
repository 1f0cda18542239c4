import numpy as np

from traindx.analysis.metrics.repeats import (
    MANY_STEPS,
    STEPS,
    by_epoch,
    by_step,
    has_no_gradient,
    stands_since,
    usual_value,
)
from traindx.examples import decay, flat, join, logged
from traindx.model.run import Series
from traindx.registry import Findings, Run, cite, detector, finding, suggested

ENOUGH_DIGITS = 4  # the mean over an epoch repeats in three digits on any plateau
EPOCHS = 6  # in a row, up to the end
STEP_DIGITS = 6  # no two batches agree so far; a bar that repeats an epoch's value shows fewer
CAUSES = suggested(
    moderate="missing-optimizer-step lr-zero parameters-not-in-optimizer frozen-parameters "
    "dead-relu saturated-activations",
    weak="representation-collapse",
)


@detector(needs=("loss",), suggests=tuple(CAUSES))
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
    epochs = by_epoch(loss.finite())
    if epochs is not None and len(epochs) >= EPOCHS:
        yield from _stands(epochs, "epoch", EPOCHS, ENOUGH_DIGITS)
    elif not has_no_gradient(run):
        yield from _stands(by_step(loss.finite()), "step", STEPS, STEP_DIGITS)
    if not has_no_gradient(run):
        usual = usual_value(by_step(loss.finite()))
        yield from _stands(usual, "step", MANY_STEPS, STEP_DIGITS, often="nearly every")


def _stands(finite: Series, unit: str, least: int, digits: int, often: str = "every") -> Findings:
    start = stands_since(finite, least, digits)
    if start is None:
        return
    value = finite.last
    says = f"{finite.origin.name} is {value:.6g} in {len(finite) - start} {unit}s"
    yield finding(
        f"The training loss is {value:.6g} in {often} {unit} since {finite.when(start)}",
        CAUSES,
        cite(finite, says, start, -1, value=value),
    )


FIRES = {
    "stands from the second epoch on": logged(
        loss_train=join([1.9112], np.full(9, 1.9105)), axis="epoch"
    ),
    "ten batches alike": logged(loss_train=np.full(12, 10.8259)),
    "nearly all batches alike": logged(
        loss_train=np.where(np.arange(120) % 30 == 29, 0.2, 0.4000000059)
    ),
    "never moves": logged(loss_train=np.full(8, 7.6246), axis="epoch"),
}

SILENT = {
    "near miss: learnt, then stands still": logged(
        loss_train=join(decay(3), np.full(20, 0.4871)), axis="epoch"
    ),
    "near miss: few digits": logged(loss_train=np.full(10, 0.69), axis="epoch"),
    "near miss: there is no gradient, which says more": logged(
        loss_train=np.full(12, 2.56495), grad_norm=np.zeros(12)
    ),
    "near miss: nearly all alike in few digits": logged(
        loss_train=np.where(np.arange(120) % 30 == 29, 0.2, 0.4)
    ),
    "near miss: learnt, then nearly all alike": logged(
        loss_train=join(decay(40), np.full(160, 0.487123456))
    ),
    "near miss: never a number": logged(loss_train=np.full(12, np.nan)),
    "near miss: a bar that shows the last epoch's value": logged(loss_train=np.full(40, 0.4871)),
    "a plateau with moving digits": logged(loss_train=flat(12, 1.9, noise=1e-3), axis="epoch"),
    "a healthy run": logged(loss_train=decay(20), axis="epoch"),
}
