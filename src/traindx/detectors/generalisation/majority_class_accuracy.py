import numpy as np

from traindx.analysis.metrics.scores import ZERO_REPEATS, zero_score
from traindx.examples import flat, logged
from traindx.registry import Findings, Run, cite, detector, finding, suggested

HIGH = 0.8  # accuracy: below, the class is not rare enough to hide behind


@detector(
    needs=("accuracy/*", "recall/*|f1/*|precision/*"),
    suggests=("class-imbalance", "class-collapse"),
)
def check(run: Run) -> Findings:
    """Accuracy is high while recall or F1 is zero.

    ## What it detects
    An accuracy of 80 % or more beside a recall or F1 score that is zero in the last five
    evaluations.

    ## Why it matters
    The model answers with the majority class. The accuracy is the share of that class and nothing
    else.

    ## What to do
    Weight the loss or resample, and select models by recall, F1 or the area under the
    precision-recall curve.

    ## When it is wrong
    A metric that is computed for the wrong class, or with a threshold that nothing reaches, is zero
    too; look at the confusion matrix.
    """
    for phase in ("val", "test", "train"):
        accuracy = run.get(f"accuracy/{phase}")
        if accuracy is None or len(accuracy.finite()) < ZERO_REPEATS:
            continue
        end = float(np.median(accuracy.finite().values[-ZERO_REPEATS:]))
        share = end / 100.0 if end > 1.5 else end
        zero = zero_score(run, phase)
        if share < HIGH or zero is None:
            continue
        yield finding(
            f"Accuracy is {share:.1%}, but {zero.origin.name} is 0: one class is never right",
            suggested("class-imbalance", weak="class-collapse"),
            cite(
                zero,
                f"{zero.origin.name} is 0 in the last {ZERO_REPEATS} evaluations",
                -ZERO_REPEATS,
                -1,
            ),
            cite(accuracy, f"{accuracy.origin.name} ends at {end:.4g}", -1, accuracy=end),
            onset=zero.steps[0],
        )
        return


def _run(accuracy: float, recall: float) -> Run:
    return logged(accuracy_val=flat(20, accuracy, noise=0.002), recall_val=np.full(20, recall))


FIRES = {"two per cent positives": _run(0.979, 0.0)}

SILENT = {"found, if rarely": _run(0.979, 0.3), "near miss: both poor": _run(0.5, 0.0)}
