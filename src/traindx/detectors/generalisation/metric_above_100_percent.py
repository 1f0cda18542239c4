import numpy as np

from traindx.examples import make_run
from traindx.registry import Findings, Run, cite, detector, finding

SHARES = ("accuracy", "precision", "recall", "f1", "auc", "iou", "dice")
WHOLE = 100.0  # in percent; whether 1.0 is the whole cannot be told from values above it
SLACK = 1.001  # rounding, or a mean of rounded values
ENOUGH = 2  # values above it: one may be misread


@detector(
    needs=("accuracy/*|precision/*|recall/*|f1/*|auc/*|iou/*|dice/*",), suggests=("metric-bug",)
)
def check(run: Run) -> Findings:
    """An accuracy, precision, recall, F1, AUC, IoU or Dice score is above 100 %.

    ## What it detects
    A metric that is a share by definition and has values above 100.

    ## Why it matters
    More right answers are counted than there are examples: what is counted or what it is divided by
    is wrong. Training may be fine; the number that decides about it is not.

    ## What to do
    Reset the counters for every evaluation. Compare predictions and labels of the same shape:
    `(N, 1) == (N,)` compares every one with every other. Divide by the number of examples.

    ## When it is wrong
    Another quantity under such a name, such as a count of right answers called accuracy.
    """
    for name, series in run.series.items():
        kind = name.split("/", 1)[0]
        values = series.values[np.isfinite(series.values)]
        if kind not in SHARES or int((values > WHOLE * SLACK).sum()) < ENOUGH:
            continue
        index = int(np.nanargmax(series.values))
        most = float(series.values[index])
        yield finding(
            f"The metric {series.name} is above 100 %: it reaches {most:.4g}",
            "metric-bug",
            cite(series, f"{series.name} is {most:.4g}", index, value=most),
            onset=series.steps[int(np.argmax(series.values > WHOLE * SLACK))],
        )
        return


def _run(*values: float, name: str = "accuracy/val") -> Run:
    return make_run({name: values})


FIRES = {
    "a counter that is never reset": _run(94.3, 189.1, 284.0, 379.2),
    "a comparison of all with all": _run(1210.0, 1214.5),
}

SILENT = {
    "in percent": _run(91.0, 95.5, 100.0),
    "near miss: a fraction": _run(0.91, 0.955, 1.0),
    "near miss: one value": _run(91.0, 9550.0, 96.0),
    "near miss: a count": _run(310.0, 342.0, name="reward/train"),
}
