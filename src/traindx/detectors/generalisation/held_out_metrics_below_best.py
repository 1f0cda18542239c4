import numpy as np

from traindx.analysis.courses.main_metrics import course_of_series, left_best
from traindx.examples import decay, logged
from traindx.registry import Findings, Run, Strength, cite, detector, finding, suggested

CAUSES = suggested(weak="overfitting distribution-shift lr-too-high batchnorm-small-batch")


@detector(needs=("*/val*|*/test*",), suggests=tuple(CAUSES))
def check(run: Run) -> Findings:
    """Every held-out metric ends far below its best.

    ## What it detects
    Held-out losses and scores that all end worse than their best by an eighth of their size or
    more, by more than their noise, and were best well before the end. It needs no training loss.

    ## Why it matters
    The last model is not the best one; something went wrong after the best evaluation.

    ## What to do
    Keep the checkpoint of the best evaluation. Log the training loss beside it: if that goes on
    falling, the model overfits; if it rises too, the steps are too large.

    ## When it is wrong
    Several runs in one file, or data that change on purpose.
    """
    series = left_best(run)
    if series is None:
        return
    course = course_of_series(series)
    at = min(len(series) - 1, int(course.best_at * len(series)))
    best, end = course.told(course.best), course.told(course.end)
    yield finding(
        "The held-out metrics end far below their best",
        CAUSES,
        cite(
            series,
            f"{series.origin.name} is about {best:.4g} at {series.when(at)} and ends at {end:.4g}",
            at,
            -1,
            best=best,
            end=end,
        ),
        strength=Strength.MODERATE,
    )


_DOWN = np.concatenate([np.linspace(0.5, 0.8, 10), np.linspace(0.8, 0.55, 20)])
_NOISE = 0.004 * np.random.default_rng(0).standard_normal(30)

FIRES = {
    "an accuracy alone": logged(accuracy_val=_DOWN + _NOISE),
    "loss and accuracy": logged(accuracy_val=_DOWN + _NOISE, loss_val=2.0 - 1.5 * _DOWN + _NOISE),
}

SILENT = {
    "near miss: the accuracy holds": logged(
        accuracy_val=np.linspace(0.5, 0.8, 30) + _NOISE, loss_val=2.0 - 1.5 * _DOWN + _NOISE
    ),
    "learns": logged(loss_val=decay(30)),
    "near miss: five evaluations": logged(accuracy_val=[0.5, 0.8, 0.7, 0.65, 0.6]),
}
