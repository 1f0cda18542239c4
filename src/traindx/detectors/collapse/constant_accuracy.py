import numpy as np

from traindx.analysis.metrics.scores import EVALUATIONS, is_constant_score, is_model_moving
from traindx.examples import decay, flat, logged
from traindx.model.run import Series
from traindx.registry import Finding, Findings, Run, cite, detector, finding, suggested

FITTED = 0.3  # of its start: a training loss that has been learnt
# the loss rewards that one answer
FITTED_TO_ONE = suggested(
    "class-collapse", moderate="class-imbalance degenerate-batch", weak="wrong-loss-for-task"
)
STUCK = suggested(
    moderate="class-collapse vanishing-gradients",
    weak="dead-relu saturated-activations wrong-loss-for-task lr-too-high lr-too-low",
)


@detector(needs=("accuracy/*", "loss"), suggests=tuple(STUCK | FITTED_TO_ONE))
def check(run: Run) -> Findings:
    """The accuracy never changes in any digit while the loss moves.

    ## What it detects
    An accuracy below 90 % that is equal in every printed digit from the first or second evaluation
    to the last, over five evaluations or more, while the loss changes.

    ## Why it matters
    A model that answers the inputs changes some answers as it trains. One that gives all inputs the
    same class changes none: its accuracy is the share of that class.

    ## What to do
    Print the predicted classes of one batch. If all are alike, look at what the loss rewards: the
    weights and the counts of the classes where training has fitted; dead, saturated or too deep
    layers where it has not.

    ## When it is wrong
    A handful of examples may be answered alike for long. A metric that is computed on something
    else than the outputs is constant too.
    """
    loss = run.main_loss()
    for phase in ("val", "test", "train"):
        accuracy = run.get(f"accuracy/{phase}")
        if accuracy is None or loss is None or len(loss.finite()) < EVALUATIONS:
            continue
        finite = accuracy.finite()
        if not is_constant_score(finite) or not is_model_moving(run, loss.finite(), phase):
            continue
        yield _finding(finite, loss.finite())
        return


def _finding(accuracy: Series, loss: Series) -> Finding:
    value = accuracy.last
    start, end = float(loss.values[0]), float(np.median(loss.values[-3:]))
    is_fitted = end < FITTED * start
    says = f"{accuracy.origin.name} is {value:.4g} in {len(accuracy) - 1} evaluations in a row"
    moved = f"{loss.origin.name} went from {start:.4g} to {end:.4g}"
    return finding(
        f"The accuracy stays at {value:.4g}, so all inputs probably get the same class",
        FITTED_TO_ONE if is_fitted else STUCK,
        cite(accuracy, says, 1, -1, accuracy=value),
        cite(loss, moved, 0, -1, start=start, end=end),
        onset=accuracy.steps[0],
    )


def _run(accuracy: list[float], end: float) -> Run:
    return logged(
        accuracy_val=accuracy,
        loss_train=decay(30, 1.6, end),
        loss_val=flat(len(accuracy), 2.0, noise=0.1),
    )


FIRES = {
    "the share of one class, training fitted": _run([0.2333] * 6, 0.01),
    "the share of the larger class, training stuck": _run([0.41, *[0.6577] * 11], 1.5),
}

SILENT = {
    "near miss: as good as it gets": _run([0.9664] * 12, 0.01),
    "near miss: one answer more": _run([*[0.6577] * 11, 0.6644], 1.5),
    "learns": _run([0.2, 0.4, 0.5, 0.6, 0.7, 0.75], 0.3),
    "near miss: batches differ, nothing moves": logged(
        accuracy_train=[0.0976] * 6, loss_train=flat(10, 2.31, noise=0.02)
    ),
    "near miss: nothing moves at all": logged(
        accuracy_val=[0.2333] * 8, loss_train=[1.61] * 8, loss_val=[1.61] * 8
    ),
}
