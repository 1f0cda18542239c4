import numpy as np

from traindx.analysis.courses.main_metrics import jumpy_loss
from traindx.examples import decay, logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

CAUSES = suggested(
    weak="lr-too-high batchnorm-small-batch batch-too-small overfitting distribution-shift"
)


@detector(needs=("loss/val*|mse/val*|rmse/val*|mae/val*",), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The validation loss jumps up again and again.

    ## What it detects
    A held-out loss that rises by a third or more in one of three evaluations after the first third
    of the run, at a level that is a good part of where it began.

    ## Why it matters
    Which checkpoint is the best is a matter of luck, and so is the result.

    ## What to do
    Evaluate on more examples, lower the learning rate, and look at batch norm with small batches:
    its running statistics lag behind weights that move fast.

    ## When it is wrong
    A loss that is drawn at random, as that of a diffusion model at random times, jumps by nature;
    so does one of a handful of examples.
    """
    found = jumpy_loss(run)
    if found is None:
        return
    series, ups, count = found
    low, high = (float(f(series.values[len(series) // 3 :])) for f in (np.min, np.max))
    says = f"{series.origin.name} rises by a third or more in {ups} of {count} evaluations"
    yield finding(
        "The validation loss jumps up again and again",
        CAUSES,
        cite(series, f"{says}, between {low:.4g} and {high:.4g}", len(series) // 3, -1, jumps=ups),
    )


_JUMPS = np.array([3.3, 2.2, 0.9, 0.8, 2.3, 1.1, 3.2, 2.1, 0.7, 3.4, 0.9, 2.8])

FIRES = {"between a half and the whole": logged(loss_val=_JUMPS, axis="epoch")}

SILENT = {
    "near miss: next to nothing": logged(loss_val=np.append([90.0, 40.0], _JUMPS), axis="epoch"),
    "learns": logged(loss_val=decay(12), axis="epoch"),
    "one bump": logged(loss_val=np.append(np.append(decay(9), [1.9]), decay(6, 0.5)), axis="epoch"),
}
