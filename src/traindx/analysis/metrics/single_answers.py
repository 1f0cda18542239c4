"""Runs in which one class is the answer to every input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx.analysis.metrics.class_counts import (
    held_out_counts,
    largest_class_share,
    only_predicted_class,
)
from traindx.analysis.metrics.scores import as_shares
from traindx.model.findings import Evidence, cite, cite_setting
from traindx.model.run import Run

REPEATS = 5  # evaluations with the same accuracy to the end
SAME = 2e-3  # of the accuracy: what rounding to a tenth of a per cent leaves
ZEROS = 3  # evaluations in which nothing is found
LEARNT = 0.2  # of its first value: a training loss that has fallen so far has learnt something
TRIVIAL = 0.98  # a larger share equals the accuracy of good models too


@dataclass(frozen=True, slots=True)
class SingleAnswer:
    """What shows one class for all inputs, and the share that its examples have."""

    says: str
    evidence: tuple[Evidence, ...]
    share: float
    is_seen: bool = True


def single_answer(run: Run) -> SingleAnswer | None:
    """Return the one class of all answers: by a matrix, by the recalls, or by an accuracy."""
    return _in_matrix(run) or _in_recalls(run) or _as_accuracy(run)


def _in_matrix(run: Run) -> SingleAnswer | None:
    last = run.confusions[-1] if run.confusions else None
    found = None if last is None else only_predicted_class(last)
    if last is None or found is None:
        return None
    label, share, examples = found
    says = f"all {examples} are classified as {label}"
    where = Evidence(says, last.artifact, last.locator, values={"largest_share": share})
    return SingleAnswer(f"Every input is classified as {label}", (where,), share)


def _in_recalls(run: Run) -> SingleAnswer | None:
    for phase in ("val", "test"):
        recalls = [s for s in run.matching(f"recall/{phase}/class*") if np.isfinite(s.last)]
        full = [s for s in recalls if s.last == 1.0]
        if len(recalls) < 2 or len(full) != 1:
            continue
        if any(s.last > 0.0 for s in recalls if s is not full[0]):
            continue
        says = f"{full[0].origin.name} is 1, that of the other {len(recalls) - 1} classes is 0"
        counts = held_out_counts(run)
        share = largest_class_share(counts) if counts is not None else 0.0
        claim = f"Every input is classified as {full[0].name.rsplit('/', 1)[-1]}"
        return SingleAnswer(claim, (cite(full[0], says, -1),), share)
    return None


def _as_accuracy(run: Run) -> SingleAnswer | None:
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
            return SingleAnswer(claim, evidence, share, is_seen=False)
    return None


def never_found(run: Run) -> tuple[str, Evidence] | None:
    """Return a metric that is zero at every evaluation of a run whose training loss falls far."""
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
        return told.name, cite(told, f"{says}; {learnt}", 0, -1)
    return None
