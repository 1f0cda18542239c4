import numpy as np

from traindx.examples import decay, flat, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding

ENOUGH = 3  # evaluations
ALIKE = (0.6, 1.6)  # one end over the other, without their signs
MOVED = 2.0  # times its first value: where the validation loss ends, or above


@detector(needs=("loss/train*", "loss/val*"), suggests=("wrong-loss-for-task",))
def check(run: Run) -> Findings:
    """The training loss is the negative of the validation loss, and falls as that one rises.

    ## What it detects
    A training loss that falls below zero, and a validation loss above zero that rises to about the
    same size: one is the mirror image of the other.

    ## Why it matters
    Both measure the same with opposite signs, and training descends on the wrong one: it looks for
    the worst answer. The loss has no lower bound and falls for ever, which looks like progress.

    ## What to do
    Take the minus away from the loss that backward is called on.

    ## When it is wrong
    A validation value of which more is better, a log-likelihood under the name of a loss, mirrors
    the loss of training rightly.
    """
    loss, held_out = run.objective(), run.get("loss/val")
    if loss is None or held_out is None or loss.name.startswith("loss/val"):
        return
    trained, told = loss.finite(), held_out.finite()
    if len(trained) < ENOUGH or len(told) < ENOUGH or not trained.name.startswith("loss/"):
        return
    ends = [float(np.median(s.values[-ENOUGH:])) for s in (trained, told)]
    start = float(told.values[0])
    is_mirrored = ends[0] < 0 < start and ALIKE[0] < -ends[0] / max(ends[1], 1e-12) < ALIKE[1]
    if not is_mirrored or ends[1] < MOVED * start or ends[0] >= float(trained.values[0]):
        return
    says = f"{trained.origin.name} ends at {ends[0]:.4g}, {told.origin.name} at {ends[1]:.4g}"
    yield finding(
        "The loss has the wrong sign: training loss falls below zero as validation loss rises",
        {"wrong-loss-for-task": Strength.STRONG},
        cite(trained, says, -1, train=ends[0]),
        cite(told, f"{told.origin.name} began at {start:.4g}", 0, -1, val=ends[1]),
        against={"overfitting": Strength.MODERATE, "distribution-shift": Strength.MODERATE},
        onset=trained.steps[0],
    )


_RISING = np.linspace(0.9, 21.5, 8)

FIRES = {
    "a minus before the loss": logged(
        loss_train=-np.linspace(0.8, 22.0, 8), loss_val=_RISING, axis="epoch"
    )
}

SILENT = {
    "near miss: overfitting": logged(
        loss_train=decay(8, 0.9, 0.01), loss_val=_RISING, axis="epoch"
    ),
    "near miss: a likelihood that is negative in both": logged(
        loss_train=-np.linspace(0.8, 22.0, 8), loss_val=-_RISING, axis="epoch"
    ),
    "near miss: a negative loss and another measure": logged(
        loss_train=-np.linspace(0.8, 22.0, 8), loss_val=flat(8, 0.4), axis="epoch"
    ),
}
