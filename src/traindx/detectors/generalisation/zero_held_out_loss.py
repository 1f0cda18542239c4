import numpy as np

from traindx.examples import decay, logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

ENOUGH = 3  # evaluations
CAUSES = suggested(moderate="empty-validation metric-bug", weak="padding-in-loss")


@detector(needs=("loss/val*", "loss"), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The held-out loss is exactly zero at every evaluation.

    ## What it detects
    A validation or test loss of which every value is 0, while the training loss is not.

    ## Why it matters
    No model has no loss on examples it has not seen. The loader is empty, the sum is never added
    to, or everything is masked: there is no evaluation.

    ## What to do
    Print how many examples the evaluation sees, and the loss of its first batch.

    ## When it is wrong
    A log that prints few digits shows zeros for a loss that is very small.
    """
    val, train = run.get("loss/val"), run.main_loss()
    if val is None or train is None or len(val.finite()) < ENOUGH:
        return
    if np.any(val.finite().values != 0.0) or not float(np.median(np.abs(train.values))) > 1e-2:
        return
    yield finding(
        "The held-out loss is exactly zero at every evaluation",
        CAUSES,
        cite(val, f"{val.origin.name} is 0 in all {len(val)} evaluations", 0, -1),
    )


FIRES = {"never added to": logged(loss_train=decay(15, 9.0, 2.0), loss_val=np.zeros(15))}

SILENT = {
    "near miss: both are as small as the log's digits": logged(
        loss_train=np.full(15, 0.001), loss_val=np.zeros(15)
    ),
    "evaluated": logged(loss_train=decay(15), loss_val=decay(15)),
}
