import numpy as np

from traindx.analysis.metrics.scores import SCORED_POINTS, stays_near_zero
from traindx.examples import logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding, suggested

LEARNT = 0.5  # of its first level: where the loss has come to, or below
SMALL = 0.3  # a cross-entropy this small means that most answers are right


@detector(needs=("accuracy/train", "loss/train"), suggests=("metric-bug", "wrong-loss-for-task"))
def check(run: Run) -> Findings:
    """The accuracy stays near zero from the first epoch to the last, while the loss falls.

    ## What it detects
    A training accuracy below three in a hundred that does not move, beside a training loss that
    fell to half and is so small that, as a cross-entropy, it would mean that most answers are
    right.

    ## Why it matters
    Training works, and only the metric is meaningless. A regression output hardly ever equals its
    target exactly, and predictions that are compared with labels of another form never do.

    ## What to do
    For a regression log an error in the unit of the targets. For classes compare the form of the
    predictions and of the labels that the accuracy compares.

    ## When it is wrong
    A squared error on the scores of very many classes is small from the start, and the accuracy
    rises late.
    """
    accuracy, loss = run.get("accuracy/train"), run.get("loss/train")
    if accuracy is None or loss is None or not stays_near_zero(accuracy.finite()):
        return
    finite = loss.finite()
    if len(finite) < SCORED_POINTS or len(finite) < len(loss) or float(finite.values.min()) < 0:
        return
    first, last = float(finite.values[0]), float(np.median(finite.values[-3:]))
    if last > min(LEARNT * first, SMALL):
        return
    highest = float(accuracy.finite().values.max())
    yield finding(
        f"The accuracy stays near zero ({highest:.2g} at most) while the loss falls, so the "
        "metric is wrong for this task",
        suggested(moderate="metric-bug", weak="wrong-loss-for-task"),
        cite(accuracy, f"{accuracy.origin.name} is {highest:.2g} at most", 0, -1, max=highest),
        cite(finite, f"{loss.origin.name} fell from {first:.3g} to {last:.3g}", 0, -1, end=last),
        strength=Strength.MODERATE,
    )


_FALLING = np.geomspace(0.16, 0.02, 12)

FIRES = {
    "a regression": logged(
        loss_train=_FALLING, accuracy_train=np.tile([0.0, 0.0056], 6), axis="epoch"
    )
}

SILENT = {
    "near miss: the accuracy begins to rise": logged(
        loss_train=_FALLING, accuracy_train=np.linspace(0.001, 0.012, 12), axis="epoch"
    ),
    "near miss: a thousand classes, hardly learnt": logged(
        loss_train=np.linspace(6.9, 6.1, 12), accuracy_train=np.linspace(0.001, 0.004, 12)
    ),
    "learns": logged(loss_train=_FALLING, accuracy_train=np.linspace(0.5, 0.95, 12)),
}
