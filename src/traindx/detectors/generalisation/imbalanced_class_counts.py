from collections.abc import Mapping
from dataclasses import replace

from traindx.analysis.metrics.class_counts import last_recall, training_counts
from traindx.examples import Confusion, make_run
from traindx.registry import Findings, Run, Strength, detector, finding

SKEWED = 10.0  # largest over smallest class; below, plain training copes
POOR = 0.2  # recall of the rare class
FOUND = 0.5  # recall from which the model has coped with the imbalance
FREQUENT = 0.8  # recall of the largest class; if that is poor too, imbalance is not the point


@detector(needs=("config|confusions",), suggests=("class-imbalance",))
def check(run: Run) -> Findings:
    """One class has ten times the examples of another.

    ## What it detects
    Logged class counts, or the rows of a confusion matrix, of which the largest is ten times the
    smallest or more. Where the recall of the rare class is known, it decides: poor recall makes it
    a finding, good recall clears it.

    ## Why it matters
    The loss is the mean over examples: a rare class hardly counts in it, and accuracy hides that.

    ## What to do
    Weight the loss or resample, and select models by recall or F1 of the rare class.

    ## When it is wrong
    Many tasks are imbalanced and trained well; without a recall this is a remark.
    """
    found = training_counts(run)
    if found is None:
        return
    counts, where = found
    present = {label: n for label, n in counts.items() if n > 0}
    if len(present) < 2:
        return
    rare, frequent = min(present, key=lambda k: present[k]), max(present, key=lambda k: present[k])
    ratio = present[frequent] / present[rare]
    if ratio < SKEWED:
        return
    recall = last_recall(run, rare)
    if recall is not None and recall[0] >= FOUND:
        return
    common = last_recall(run, frequent)
    is_lost = recall is not None and recall[0] <= POOR
    is_lost = is_lost and (common is None or common[0] >= FREQUENT)
    strength = Strength.STRONG if is_lost else Strength.WEAK
    claim = f"Class {frequent} has {ratio:.3g} times the examples of class {rare}"
    yield finding(
        f"{claim}, whose recall is near zero" if is_lost else claim,
        {"class-imbalance": strength},
        where,
        *((recall[1],) if recall is not None else ()),
        strength=strength,
        is_symptom=is_lost,
    )


def _run(counts: Mapping[str, float], *rows: tuple[float, ...]) -> Run:
    run = make_run(config={"class_counts": counts} if counts else {"lr": 0.1})
    labels = tuple(str(i) for i in range(len(rows)))
    return replace(run, confusions=(Confusion(rows, labels, "a.log"),) if rows else ())


FIRES = {
    "a remark": _run({"0": 990, "1": 10}),
    "and the rare class is lost": _run({"0": 990, "1": 10}, (495, 0), (5, 0)),
    "by the matrix alone": _run({}, (4950, 3), (47, 3)),
}

SILENT = {
    "balanced": _run({"0": 500, "1": 480}),
    "near miss: three to one": _run({"0": 750, "1": 250}),
    "near miss: imbalanced and learnt all the same": _run({"0": 990, "1": 10}, (490, 5), (1, 9)),
    "a class without examples": _run({"0": 990, "1": 0}),
}
