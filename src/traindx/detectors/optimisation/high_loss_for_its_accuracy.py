import numpy as np

from traindx.analysis.courses.loss_courses import high_for_its_accuracy
from traindx.analysis.metrics.scores import as_shares
from traindx.examples import decay, logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

CAUSES = suggested(
    moderate="softmax-before-cross-entropy excessive-regularisation", weak="metric-bug"
)


@detector(needs=("loss", "accuracy/train*"), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """Half the answers come right, and the cross-entropy hardly falls.

    ## What it detects
    A training accuracy that rises from little to half or more, while the loss, begun at that of a
    guess among many classes, keeps three quarters of its first level.

    ## Why it matters
    A model that is right and never sure cannot lower its loss: a softmax before the softmax of
    the loss keeps every probability near 1/C, and its gradients small.

    ## What to do
    Give the loss the logits. If it has them, look at label smoothing, at mixing of examples and at
    a temperature.

    ## When it is wrong
    Strong mixing of examples and labels keeps the training loss up by design.
    """
    loss, accuracy = run.objective(), run.get("accuracy/train")
    if loss is None or accuracy is None:
        return
    told, right = loss.finite(), accuracy.finite()
    if not high_for_its_accuracy(told.values, as_shares(right)):
        return
    start, end = float(told.values.max()), told.last
    yield finding(
        "The loss stays high for so many right answers",
        CAUSES,
        cite(told, f"{told.origin.name} goes from {start:.4g} to {end:.4g}", 0, -1, end=end),
        cite(right, f"{right.origin.name} ends at {right.last:.4g}", -1, accuracy=right.last),
    )


_RIGHT = np.linspace(0.04, 0.69, 40)

FIRES = {
    "sixty classes, softmax twice": logged(
        loss_train=np.linspace(4.1, 3.55, 40), accuracy_train=_RIGHT
    )
}

SILENT = {
    "learns": logged(loss_train=decay(40, 4.1, 1.2), accuracy_train=_RIGHT),
    "near miss: few answers are right": logged(
        loss_train=np.linspace(4.1, 3.55, 40), accuracy_train=np.linspace(0.02, 0.2, 40)
    ),
    "near miss: begun far along": logged(
        loss_train=np.linspace(1.9, 1.6, 40), accuracy_train=np.linspace(0.55, 0.62, 40)
    ),
}
