"""How many examples each class has, as settings and confusion matrices tell it."""

from collections.abc import Mapping

import numpy as np

from traindx.model.findings import Evidence, cite, cite_setting
from traindx.model.run import Confusion, Run, Setting

COUNTED = 20  # examples in a confusion matrix; of fewer, one class may be a matter of chance


def held_out_counts(run: Run) -> Setting | None:
    """Return the class counts of held-out data if they are known, else any."""
    found = [s for s in run.config.matching("class_counts") if isinstance(s.value, dict)]
    return next(
        (s for s in found if s.key.startswith(("val", "test"))), found[-1] if found else None
    )


def largest_class_share(counts: Setting) -> float:
    """Return the share of the largest class; 0 where no number is known."""
    numbers = [float(v) for v in counts.value.values()]
    return max(numbers) / sum(numbers) if numbers and sum(numbers) > 0 else 0.0


def training_counts(run: Run) -> tuple[Mapping[str, float], Evidence] | None:
    """Return the examples of each class of the training data, and where they are told."""
    for setting in run.config.matching("class_counts"):
        if isinstance(setting.value, dict) and not setting.key.startswith(("val", "test")):
            shown = ", ".join(f"{k}: {v:g}" for k, v in list(setting.value.items())[:8])
            return setting.value, cite_setting(setting, f"examples per class: {shown}")
    if not run.confusions:
        return None
    last = run.confusions[-1]
    rows = [sum(row) for row in last.matrix]
    if max(rows) <= 1.0:  # shares of each class say nothing of its size
        return None
    says = f"the rows of the confusion matrix sum to {', '.join(f'{n:g}' for n in rows[:8])}"
    return dict(zip(last.labels, rows, strict=True)), Evidence(says, last.artifact, last.locator)


def last_recall(run: Run, label: str) -> tuple[float, Evidence] | None:
    """Return the last recall of a class, by matrix or by report."""
    if run.confusions and label in run.confusions[-1].labels:
        last = run.confusions[-1]
        at = last.labels.index(label)
        row = last.matrix[at]
        if sum(row) > 0:
            says = f"{row[at]:g} of {sum(row):g} examples of class {label} are predicted correctly"
            return row[at] / sum(row), Evidence(says, last.artifact, last.locator)
    for phase in ("val", "test"):
        series = run.get(f"recall/{phase}/class {label}")
        if series is not None and np.isfinite(series.last):
            return series.last, cite(series, f"{series.origin.name} is {series.last:.3g}", -1)
    return None


def only_predicted_class(confusion: Confusion) -> tuple[str, float, str] | None:
    """Return the one class that all examples get, the largest class's share, and how many."""
    matrix = np.array(confusion.matrix)
    predicted = np.flatnonzero(matrix.sum(axis=0))
    classes = np.flatnonzero(matrix.sum(axis=1))
    total = float(matrix.sum())
    are_shares = bool(np.allclose(matrix.sum(axis=1)[classes], 1.0, atol=0.02))
    if len(predicted) != 1 or len(classes) < 2 or (total < COUNTED and not are_shares):
        return None
    share = float(matrix.sum(axis=1).max() / total)
    return (
        confusion.labels[int(predicted[0])],
        share,
        f"{total:g} examples of {len(classes)} classes",
    )
