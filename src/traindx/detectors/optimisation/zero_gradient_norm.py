import numpy as np

from traindx.analysis.curves import since
from traindx.analysis.metrics.gradient_norms import ZEROS_IN_A_ROW, does_loss_fall
from traindx.examples import decay, join, logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

SHARE = 0.5  # of all points: a run that ends converged has small gradients, not none
CAUSES = suggested(
    moderate="detached-loss frozen-parameters degenerate-batch", weak="padding-in-loss"
)


@detector(needs=("grad_norm",), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The gradient norm is exactly zero up to the end of the log.

    ## What it detects
    Five or more logged gradient norms in a row, at least half of the run, that are exactly 0.

    ## Why it matters
    Nothing is learnt: no gradient reaches a trainable parameter. A small gradient is never exactly
    zero; a loss that does not depend on the weights, frozen parameters, a batch in which no label
    counts, or a group of samples that all have the same reward give just that.

    ## What to do
    Take one batch and print `loss.requires_grad`, the number of trainable parameters, and how many
    labels are not ignored; in reinforcement learning, the spread of the rewards in a group.

    ## When it is wrong
    A logger that writes 0 for a norm that it did not measure.
    """
    norm = run.get("grad_norm")
    if norm is None or len(norm) < ZEROS_IN_A_ROW:
        return
    norm = norm.finite()  # a step that a gradient scaler skipped tells nothing either way
    onset = since(norm.values == 0.0)
    lasts = len(norm) - onset
    if lasts < ZEROS_IN_A_ROW or lasts < SHARE * len(norm) or does_loss_fall(run):
        return
    yield finding(
        f"The gradient norm is exactly 0 since {norm.when(onset)}",
        CAUSES,
        cite(norm, f"{norm.origin.name} is 0 at {lasts} points in a row", onset, -1),
    )


FIRES = {
    "no gradient from the start": logged(loss_train=np.zeros(8), grad_norm=np.zeros(8)),
    "the gradient is gone": logged(
        loss_train=np.full(20, 2.1), grad_norm=join(decay(4, 2.0, 1.0), np.zeros(16))
    ),
    "skipped steps between": logged(
        loss_train=np.full(8, 208.0), grad_norm=[0.0, 0, np.nan, 0, 0, 0, np.nan, 0]
    ),
}

SILENT = {
    "near miss: single batches without a signal": logged(
        loss_train=np.full(20, 0.1), grad_norm=[0.0, 0.2, 0.0, 0.0, 0.3] * 4
    ),
    "near miss: the norm is not measured": logged(loss_train=decay(20), grad_norm=np.zeros(20)),
    "a healthy run": logged(loss_train=decay(20), grad_norm=decay(20, 2.0, 0.5)),
}
