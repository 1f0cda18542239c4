import numpy as np

from traindx.analysis.courses.one_answer_scores import one_answer
from traindx.examples import make_run
from traindx.registry import Findings, Run, Strength, cite, detector, finding


@detector(
    needs=("accuracy/*", "f1/*|accuracy/*/*|recall/*"),
    suggests=("class-collapse", "class-imbalance"),
)
def check(run: Run) -> Findings:
    """The scores are those of a model that gives all inputs one class.

    ## What it detects
    Scores of single classes of which one is 1 and all others are 0 in the last evaluations; or an
    accuracy p that stands still beside an F1 of 2p/(1+p), of a C-th of it, or weighted by class,
    which is what one answer for all inputs gives.

    ## Why it matters
    The accuracy is the share of the largest class. It looks like a result and is none.

    ## What to do
    Print the predicted classes of one batch. Then look at the counts of the classes and at the
    learning rate: weigh the loss by class, and try a rate ten times smaller.

    ## When it is wrong
    Held-out data that hold one class only give the same scores.
    """
    found = one_answer(run)
    if found is None:
        return
    yield finding(
        "All inputs get the same class",
        {"class-collapse": Strength.STRONG, "class-imbalance": Strength.WEAK},
        cite(found.score, found.why, -1, score=found.score.last),
    )


_STILL = np.full(12, 0.6821)

FIRES = {
    "one class always, the others never": make_run(
        {
            "accuracy/val": np.full(9, 0.7264),
            "accuracy/val/class_0": np.zeros(9),
            "accuracy/val/class_1": np.zeros(9),
            "accuracy/val/class_2": np.ones(9),
        }
    ),
    "the F1 of that class": make_run({"accuracy/val": _STILL, "f1/val": np.full(12, 0.811)}),
    "two evaluations, three classes of one size": make_run(
        {"accuracy/val": [0.33, 0.3315], "f1/val": [0.1640, 0.1653]}
    ),
}

SILENT = {
    "near miss: still, with another F1": make_run(
        {"accuracy/val": _STILL, "f1/val": np.full(12, 0.66)}
    ),
    "near miss: an F1 that fits once": make_run(
        {"accuracy/val": np.linspace(0.5, 0.68, 12), "f1/val": np.linspace(0.3, 0.81, 12)}
    ),
    "one class hardly found": make_run(
        {"accuracy/val/class_0": np.full(9, 0.2), "accuracy/val/class_1": np.ones(9)}
    ),
    "near miss: all right": make_run({"accuracy/val": np.ones(9), "f1/val": np.ones(9)}),
}
