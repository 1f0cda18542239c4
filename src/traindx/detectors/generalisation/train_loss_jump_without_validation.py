import numpy as np

from traindx.analysis.courses.loss_courses import jump_without_validation
from traindx.examples import decay, flat, join, logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

CAUSES = suggested(
    moderate="metric-bug", weak="gradient-accumulation-unscaled resume-without-optimizer-state"
)


@detector(needs=("loss", "loss/val*"), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The training loss is suddenly several times as high for good, and validation does not move.

    ## What it detects
    A training loss that triples or more from one point to the next and stays there, while the
    validation loss keeps its level.

    ## Why it matters
    The model is the same before and after. What changed is how its loss is added up: summed over
    steps or micro-batches, and logged without dividing.

    ## What to do
    Compare what is logged with the loss of one batch, and divide by the number of batches that are
    added up.

    ## When it is wrong
    Training data that are suddenly harder, and other than those of validation.
    """
    train, val = run.objective(), run.get("loss/val")
    if train is None or val is None or train.name == val.name:
        return
    told, held_out = train.finite(), val.finite()
    at = jump_without_validation(told, held_out)
    if at is None:
        return
    before, after = float(np.median(told.values[:at])), float(np.median(told.values[at:]))
    level = float(np.median(held_out.values))
    says = f"{told.origin.name} goes from {before:.4g} to {after:.4g} at {told.when(at)}"
    yield finding(
        "The training loss jumps by a factor, and the validation loss does not move",
        CAUSES,
        cite(told, says, at - 1, at, before=before, after=after),
        cite(held_out, f"{held_out.origin.name} stays at about {level:.4g}", 0, -1, level=level),
    )


FIRES = {
    "after the first line": logged(
        loss_train=join([1.468], flat(60, 13.8, noise=0.02)), loss_val=flat(9, 4.05, noise=0.01)
    ),
    "in the middle": logged(
        loss_train=join(flat(30, 1.4), flat(30, 11.2)), loss_val=flat(9, 1.5, noise=0.01)
    ),
}

SILENT = {
    "near miss: validation jumps as well": logged(
        loss_train=join(flat(30, 1.4), flat(30, 11.2)), loss_val=join(flat(5, 1.5), flat(5, 9.0))
    ),
    "near miss: one bad batch": logged(
        loss_train=join(flat(30, 1.4), [12.0], flat(30, 1.4)), loss_val=flat(9, 1.5, noise=0.01)
    ),
    "learns": logged(loss_train=decay(60), loss_val=decay(9)),
}
