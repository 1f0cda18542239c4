"""What the loss of the late training batches says of the accuracy on them."""

from __future__ import annotations

from math import log

from traindx.analysis.metrics.scores import LATE_SCORES, best_late_share
from traindx.analysis.recordings.loss_labels import (
    are_class_labels,
    has_one_label_each,
    late_loss,
)
from traindx.analysis.recordings.observations import Term, terms_of
from traindx.model.recording import Process
from traindx.model.run import Run, Series

GAP = 0.25  # between what the loss says of training examples and the accuracy


def late_class_loss(run: Run, process: Process) -> tuple[Term, Term, float] | None:
    """Return the one loss over class labels, its late part, and its level there."""
    terms = terms_of(process, "cross_entropy", "nll_loss")
    late = terms[0].late() if len(terms) == 1 else None
    if late is None or len(late) < LATE_SCORES or not are_class_labels(late):
        return None
    loss = late_loss(run, late)
    # no cross-entropy is negative: other terms are part of it, or a minus stands before it
    return None if loss < 0 else (terms[0], late, loss)


def least_accuracy(loss: float) -> float:
    """Return the accuracy that a cross-entropy implies: each mistake costs ln 2 at least."""
    return 1.0 - loss / log(2)


def ruled_out_accuracy(run: Run, late: Term, loss: float) -> tuple[Series, float] | None:
    """Return an accuracy of the training batches that their own loss rules out, and that loss."""
    own, printed = run.get("accuracy/train"), run.get("loss/train")
    is_long = own is not None and len(own.finite()) >= LATE_SCORES
    if own is None or not is_long or not all(map(has_one_label_each, late.samples)):
        return None
    # of a loss that is divided for accumulation the printed value may be the whole
    losses = [] if printed is None else printed.finite().values[-LATE_SCORES:].tolist()
    most, accuracy = max(loss, *losses, 0.0), own.finite()
    is_far = least_accuracy(most) - best_late_share(accuracy) >= GAP
    return (accuracy, most) if is_far else None
