from dataclasses import replace

from traindx.analysis.metrics.single_answers import never_found, single_answer
from traindx.examples import Confusion, logged, make_run
from traindx.registry import Findings, Run, Strength, detector, finding, suggested

SKEWED = 0.8  # share of the largest class from which imbalance explains it


@detector(
    needs=("confusions|recall/*/class*|accuracy/*|f1/*|recall/*",),
    suggests=("class-collapse", "class-imbalance", "metric-bug"),
)
def check(run: Run) -> Findings:
    """One class is predicted for every input.

    ## What it detects
    A confusion matrix with a single column that is not empty while there are examples of several
    classes; a classification report with recall 1 for one class and 0 for all others; or an
    accuracy that stays at exactly the share of the largest class. Also an F1 score or a recall of
    exactly zero in every evaluation of a run whose training loss has fallen far: nothing is ever
    found, so that all is taken for the rest.

    ## Why it matters
    The output does not depend on the input. The accuracy is the share of one class.

    ## What to do
    Compare the outputs for two very different batches. If they differ a little, the model has
    learnt the prior: weight the loss, or lower the learning rate. If they are equal, the input
    is lost.

    ## When it is wrong
    Early in training this is common; only the last evaluation counts here. A decision threshold
    that nothing reaches looks the same.
    """
    answer = single_answer(run)
    if answer is not None:
        collapse = Strength.STRONG if answer.is_seen else Strength.MODERATE
        suggests = {"class-collapse": collapse}
        if answer.share >= SKEWED:
            suggests = {"class-imbalance": collapse, "class-collapse": Strength.MODERATE}
        yield finding(answer.says, suggests, *answer.evidence, strength=collapse)
    elif (missed := never_found(run)) is not None:
        yield finding(
            f"The metric {missed[0]} stays 0 while the training loss falls",
            suggested(strong="class-collapse", moderate="class-imbalance metric-bug"),
            missed[1],
        )


def _matrix(*rows: tuple[float, ...]) -> Run:
    labels = tuple(str(i) for i in range(len(rows)))
    return replace(make_run(), confusions=(Confusion(rows, labels, "eval.log", "line 9"),))


_COUNTS = {"val.class_counts": {"0": 700, "1": 300}}

FIRES = {
    "one column": _matrix((50, 0), (50, 0)),
    "one column, rare class": _matrix((990, 0), (10, 0)),
    "recall of one class": make_run(
        {"recall/val/class a": [1.0], "recall/val/class b": [0.0], "recall/val/class c": [0.0]}
    ),
    "nothing is ever found": logged(loss_train=[0.55, 0.02, 0.001, 0.0007], f1_val=[0.0] * 4),
    "the share of the majority": logged(accuracy_val=[0.62] + [0.7] * 6, config=_COUNTS),
}

SILENT = {
    "near miss: nothing is found yet": logged(loss_train=[0.55, 0.5, 0.45, 0.4], f1_val=[0.0] * 4),
    "near miss: something is found late": logged(
        loss_train=[0.55, 0.02, 0.001, 0.0007], f1_val=[0.0, 0.0, 0.0, 0.3]
    ),
    "both classes found": _matrix((45, 5), (7, 43)),
    "near miss: nearly one column": _matrix((50, 0), (49, 1)),
    "near miss: one class in the data": _matrix((60, 0), (0, 0)),
    "near miss: accuracy passes through the share": logged(
        accuracy_val=[0.62, 0.66, 0.7, 0.74, 0.77, 0.8, 0.81], config=_COUNTS
    ),
    "few examples": _matrix((3, 0), (2, 0)),
}
