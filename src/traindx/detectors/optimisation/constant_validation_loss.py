import numpy as np

from traindx.analysis.metrics.repeats import (
    first_repeat,
    has_learnt_before,
    has_loss_fallen,
)
from traindx.examples import decay, flat, join, logged
from traindx.model.run import Series
from traindx.registry import Finding, Findings, Run, cite, detector, finding, suggested

NEVER_MOVED = suggested(
    moderate="missing-optimizer-step missing-backward lr-zero parameters-not-in-optimizer "
    "frozen-parameters",
    weak="empty-validation constant-prediction dead-relu",
)
STOPPED = suggested("lr-zero", weak="lr-schedule-misuse")


@detector(needs=("loss/val*",), suggests=(*NEVER_MOVED, "lr-schedule-misuse"))
def check(run: Run) -> Findings:
    """The validation loss is the same to the last digit, evaluation after evaluation.

    ## What it detects
    Three or more evaluations in a row, up to the end, that give the same value to six digits or
    more; or eight and more, all of the run, that give the same one to five or four.

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
    loss = run.main_loss()
    if loss is not None and not loss.is_finite[-1]:
        return  # a loss that is lost is another story
    for series in [s for s in (run.get("loss/val"), *run.matching("loss/val/*")) if s is not None]:
        finite = series.finite()
        start = first_repeat(finite)
        if start is None:
            continue
        has_moved = start >= 2 and has_learnt_before(finite, start)
        yield _finding(finite, start, learnt_before=has_moved or has_loss_fallen(run))
        return


def _finding(series: Series, start: int, *, learnt_before: bool) -> Finding:
    value = float(series.values[-1])
    says = (
        f"{series.origin.name} is {value:.10g} in all {len(series) - start} evaluations "
        f"since {series.when(start)}"
    )
    return finding(
        f"The validation loss does not change in any digit since {series.when(start)}",
        STOPPED if learnt_before else NEVER_MOVED,
        cite(series, says, start, -1, value=value),
    )


FIRES = {
    "learnt, then stood still": logged(
        loss_val=join(decay(9, 0.14, 0.065), np.full(11, 0.06503114849)), axis="epoch"
    ),
    "never moved": logged(loss_val=np.full(10, 2.302585125), axis="epoch"),
    "a huge loss that moves in its last digits only": logged(
        loss_val=join(2.6880123e8 + 50.0 * np.arange(16)[::-1], np.full(21, 2.6880100e8)),
        axis="epoch",
    ),
    "five digits, in all evaluations": logged(loss_val=np.full(16, 0.85763), axis="epoch"),
    "the training loss fell before the first evaluation": logged(
        loss_train=join([0.689, 0.594], flat(14, 0.56, noise=0.005)), loss_val=np.full(16, 0.53102)
    ),
}

SILENT = {
    "near miss: few digits on a plateau": logged(
        loss_val=np.round(join(decay(9), np.full(9, 0.65)), 2)
    ),
    "near miss: four digits, after learning": logged(
        loss_val=np.round(join(decay(9), np.full(12, 0.6512)), 4)
    ),
    "near miss: three digits in all evaluations": logged(loss_val=np.full(16, 0.693)),
    "a good run": logged(loss_val=decay(20)),
    "a plateau with moving digits": logged(loss_val=flat(20, 0.4, noise=1e-5)),
}
