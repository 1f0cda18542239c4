import numpy as np

from traindx.analysis.courses.loss_courses import FEWEST, stands_still
from traindx.examples import decay, flat, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding, suggested

CAUSES = suggested(
    weak="lr-too-low lr-too-high vanishing-gradients unnormalised-inputs label-noise "
    "missing-optimizer-step insufficient-capacity"
)


@detector(needs=("loss",), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """The training loss ends where it began.

    ## What it detects
    A loss that gains no more than a few per cent of its size and no more than its noise, from the
    first point to the last, and was never better in between.

    ## Why it matters
    Whatever the run was to learn, its loss does not show it.

    ## What to do
    Overfit one batch: if that works, the data or the learning rate are at fault; if not, the model
    gets no gradient or no step. `traindx run` shows whether the weights move.

    ## When it is wrong
    Fine-tuning that begins at its optimum, the tail of a long run, or a loss of reinforcement
    learning, which is not meant to fall. So it is a remark that leaves everything open.
    """
    loss = run.objective()
    if loss is None or len(loss.finite()) < FEWEST:
        return
    course = stands_still(loss.finite())
    if course is None:
        return
    start, end = course.start, course.end
    says = f"{loss.origin.name} goes from {start:.4g} to {end:.4g} in {len(loss)} points"
    yield finding(
        "The training loss ends where it began",
        CAUSES,
        cite(loss.finite(), says, 0, -1, start=start, end=end),
        strength=Strength.WEAK,
    )


FIRES = {
    "noise about a level": logged(loss_train=flat(60, 5.3, noise=0.02)),
    "to the last digit": logged(loss_train=np.full(20, 0.6931)),
}

SILENT = {
    "learns": logged(loss_train=decay(60)),
    "near miss: slowly, but surely": logged(loss_train=np.linspace(2.3, 2.1, 60)),
    "near miss: a reward beside it": logged(
        loss_train=flat(60, 0.02), reward_train=np.arange(60.0)
    ),
}
