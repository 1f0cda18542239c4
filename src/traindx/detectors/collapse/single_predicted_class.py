from dataclasses import replace

import numpy as np

from traindx.analysis.metrics.class_counts import (
    held_out_counts,
    largest_class_share,
    only_predicted_class,
)
from traindx.analysis.metrics.scores import as_shares
from traindx.examples import Confusion, logged, make_run
from traindx.model.findings import Evidence, cite_setting
from traindx.registry import Finding, Findings, Run, Strength, cite, detector, finding, suggested

SKEWED = 0.8  # share of the largest class from which imbalance explains it
REPEATS = 5  # evaluations with the same accuracy to the end
SAME = 2e-3  # of the accuracy: what rounding to a tenth of a per cent leaves
ZEROS = 3  # evaluations in which nothing is found
LEARNT = 0.2  # of its first value: a training loss that has fallen so far has learnt something
TRIVIAL = 0.98  # a larger share equals the accuracy of good models too


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
    found = _from_matrix(run) or _from_recalls(run) or _from_accuracy(run) or _from_zeros(run)
    if found is not None:
        yield found


def _finding(claim: str, evidence: tuple[Evidence, ...], share: float, is_shown: bool) -> Finding:
    collapse = Strength.STRONG if is_shown else Strength.MODERATE
    suggests = {"class-collapse": collapse}
    if share >= SKEWED:
        suggests = {"class-imbalance": collapse, "class-collapse": Strength.MODERATE}
    return finding(claim, suggests, *evidence, strength=collapse)


def _from_matrix(run: Run) -> Finding | None:
    for last in run.confusions[-1:]:
        found = only_predicted_class(last)
        if found is not None:
            label, share, examples = found
            says = f"all {examples} are classified as {label}"
            where = Evidence(says, last.artifact, last.locator, values={"largest_share": share})
            return _finding(f"Every input is classified as {label}", (where,), share, True)
    return None


def _from_recalls(run: Run) -> Finding | None:
    for phase in ("val", "test"):
        recalls = [s for s in run.matching(f"recall/{phase}/class*") if np.isfinite(s.last)]
        if len(recalls) < 2:
            continue
        full = [s for s in recalls if s.last == 1.0]
        if len(full) != 1 or any(s.last > 0.0 for s in recalls if s is not full[0]):
            continue
        says = f"{full[0].origin.name} is 1, that of the other {len(recalls) - 1} classes is 0"
        counts = held_out_counts(run)
        share = largest_class_share(counts) if counts is not None else 0.0
        claim = f"Every input is classified as {full[0].name.rsplit('/', 1)[-1]}"
        return _finding(claim, (cite(full[0], says, -1),), share, True)
    return None


def _from_accuracy(run: Run) -> Finding | None:
    counts = held_out_counts(run)
    if counts is None:
        return None
    share = largest_class_share(counts)
    for phase in ("val", "test"):
        accuracy = run.get(f"accuracy/{phase}")
        if accuracy is None or len(accuracy.finite()) < REPEATS or share > TRIVIAL:
            continue
        end = as_shares(accuracy.finite())[-REPEATS:]
        if float(np.ptp(end)) <= SAME and abs(float(end[-1]) - share) <= SAME:
            says = f"{accuracy.origin.name} stays at {end[-1]:.4g}"
            evidence = (cite(accuracy, says, -REPEATS, -1), cite_setting(counts))
            claim = f"The accuracy stays at the share of the largest class, {share:.1%}"
            return _finding(claim, evidence, share, False)
    return None


def _from_zeros(run: Run) -> Finding | None:
    if run.has("accuracy/*"):
        return None  # beside an accuracy such zeros tell more, and another detector says so
    loss = run.objective()
    values = loss.finite().values if loss is not None else np.empty(0)
    if len(values) < ZEROS or float(values[-1]) > LEARNT * float(values[0]) or values[-1] <= 0:
        return None
    for metric in (s for kind in ("f1", "recall") for s in run.matching(f"{kind}/*")):
        told = metric.finite()
        is_class = metric.name.rsplit("/", 1)[-1].startswith("class")
        if is_class or len(told) < ZEROS or bool(np.any(told.values)):
            continue
        says = f"{told.origin.name} is 0 in all {len(told)} evaluations"
        learnt = f"the training loss falls from {values[0]:.4g} to {values[-1]:.4g}"
        return finding(
            f"The metric {told.name} stays 0 while the training loss falls",
            suggested(strong="class-collapse", moderate="class-imbalance metric-bug"),
            cite(told, f"{says}; {learnt}", 0, -1),
        )
    return None


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
