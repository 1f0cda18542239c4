from dataclasses import replace

from traindx.analysis.metrics.scores import best_late_share, held_out_accuracy
from traindx.analysis.recordings.loss_labels import causes_of_gap
from traindx.analysis.recordings.observations import processes_of
from traindx.analysis.recordings.training_scores import (
    GAP,
    late_class_loss,
    least_accuracy,
    ruled_out_accuracy,
)
from traindx.examples import Evaluation, LossInput, Summary, recorded, sampled
from traindx.registry import Findings, Run, cite, cite_record, detector, finding, suggested

TOLD_GAP = 0.2  # where the labels of training tell why


@detector(
    needs=("recording", "accuracy/*"),
    suggests=("overfitting", "distribution-shift", "class-imbalance", "preprocessing-mismatch",
              "metric-bug"),
)  # fmt: skip
def check(run: Run) -> Findings:
    """The model is right on what it is trained on, and far less so on what it is evaluated on.

    ## What it detects
    A mistake costs a cross-entropy of ln 2 at least, so a training loss of L means an accuracy of
    1 - L / ln 2 or more on training batches. An accuracy that stays a quarter below that, in a run
    that evaluates, is of data that the model was not prepared for. The labels that were trained
    tell more: a class that is never trained, or hardly ever. Where an accuracy of training itself
    is as low, no data explain it: what is counted, or what it is divided by, is wrong.

    ## Why it matters
    Training looks excellent, and the result is not.

    ## What to do
    Compare a batch of both loaders: classes, range of values, preprocessing. If they are alike, it
    is overfitting: more data, augmentation, a smaller model.

    ## When it is wrong
    A faulty metric, or a stricter one than top-1 accuracy, is lower too. Class weights make
    mistakes on some classes cheap.
    """
    accuracy = held_out_accuracy(run)
    process = next(iter(processes_of(run)), None)
    if accuracy is None or process is None or not process.evaluations:
        return
    found = late_class_loss(run, process)
    if found is None:
        return
    term, late, loss = found
    last = late.samples[-1].line
    ruled_out = ruled_out_accuracy(run, late, loss)
    if ruled_out is not None:
        own, most = ruled_out
        value = float(own.values[-1])
        yield finding(
            f"The training accuracy of {value:.4g} contradicts the training loss of {most:.3g}, "
            f"which implies at least {least_accuracy(most):.0%}",
            suggested("metric-bug", weak="class-imbalance"),
            cite_record(process, last, f"the loss is {loss:.3g}", loss=loss),
            cite(own, f"{own.origin.name} ends at {value:.4g}", -1, accuracy=value),
            onset=own.steps[0],
        )
        return
    least, reached = least_accuracy(loss), best_late_share(accuracy)
    suggests, more = causes_of_gap(process, term)
    if least - reached < (TOLD_GAP if more else GAP):
        return
    says = f"a training loss of {loss:.3g} implies a training accuracy of {least:.0%} or more"
    ends = f"{accuracy.origin.name} ends at {reached:.1%}"
    yield finding(
        f"The accuracy is {reached:.0%}, far below the {least:.0%} on training data",
        suggests,
        cite_record(process, last, says, loss=loss),
        cite(accuracy, ends, -1, accuracy=reached),
        *more,
        onset=accuracy.steps[0],
    )


def _run(
    labels: dict[str, int], *, loss: float = 0.05, end: float = 0.4, classes: int = 4,
    own: float = 0.99, per_example: int = 1,
) -> Run:  # fmt: skip
    scores = Summary("prediction", (32 * per_example, classes))
    given = LossInput("cross_entropy", prediction=scores, classes=classes, labels=labels)
    level = [1.4, 1.4, *[loss] * 6]
    process = sampled(8, loss=lambda i: level[i], losses=(given,), batch=(Summary("0", (32, 8)),))
    process = replace(process, evaluations=(Evaluation(50, 40, forwards=3),))
    return recorded(process, accuracy_val=[0.2, end, end, end], accuracy_train=[own] * 4)


_EVEN = {"0": 9, "1": 8, "2": 9, "3": 8}

FIRES = {
    "a class that is never trained": _run({"0": 11, "1": 12, "2": 11}),
    "rare classes": _run({"0": 60, "1": 2, "2": 1, "3": 1}),
    "classes alike": _run(_EVEN),
    "right answers over batches": _run(_EVEN, end=99.0, own=31.5),
}

SILENT = {
    "accurate": _run(_EVEN, end=0.93),
    "near miss: a loss that allows it": _run(_EVEN, loss=0.5),
    "near miss: contrast, and another measure": _run(_EVEN, classes=128),
    "near miss: in per cent": _run(_EVEN, end=91.0, own=99.0),
    "near miss: many labels for an example, and whole examples are counted": _run(
        _EVEN, end=0.93, own=0.4, per_example=6
    ),
    "near miss: no cross-entropy alone": _run(_EVEN, loss=-3.0),
}
