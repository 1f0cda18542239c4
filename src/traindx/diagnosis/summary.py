"""What a diagnosis comes to: its status, and the sentence that stands first."""

from __future__ import annotations

from collections.abc import Sequence

from traindx.diagnosis.hypotheses import is_refuted
from traindx.model.findings import (
    LISTED_FROM,
    SHOWN_FROM,
    Diagnosis,
    Hypothesis,
    Status,
    Strength,
)
from traindx.model.metric_names import HIGHER_IS_BETTER, LOWER_IS_BETTER, kind_of
from traindx.model.run import Run


def status_of(draft: Diagnosis, run: Run, removed: frozenset[int] = frozenset()) -> Status:
    """Return the status; `removed` holds the ids of findings that a confirmed change takes away."""
    symptoms = [f for f in draft.findings if f.is_symptom and f.strength is not Strength.WEAK]
    roots = draft.root_causes
    if not roots:
        if symptoms or not _has_enough(run):
            return Status.INSUFFICIENT
        return Status.HEALTHY
    explained = {id(f) for h in draft.hypotheses if h.confidence >= LISTED_FROM for f in h.findings}
    all_explained = all(id(f) in explained | removed for f in symptoms)
    is_shown = all(h.confidence > SHOWN_FROM for h in roots)
    return Status.COMPLETE if all_explained and is_shown else Status.PARTIAL


def _has_enough(run: Run) -> bool:
    """A clean bill needs something to judge: a few points of a metric, or source."""
    judged = HIGHER_IS_BETTER | LOWER_IS_BETTER | {"grad_norm"}
    points = (len(s) for n, s in run.series.items() if kind_of(n) in judged)
    return max(points, default=0) >= 3 or bool(run.sources)


def summary_of(draft: Diagnosis, status: Status, run: Run) -> str:
    """Return the sentence that a report begins with."""
    roots = draft.root_causes
    if roots:
        return _cause_summary(roots)
    symptoms = sorted((f for f in draft.findings if f.is_symptom), key=lambda f: f.strength.rank)
    if status is Status.INSUFFICIENT and symptoms:
        suggested = [h for h in draft.hypotheses if h.cause in symptoms[-1].suggests]
        leads = [h.cause for h in suggested if not is_refuted(h)][:3]
        return f"{symptoms[-1].claim.rstrip('.')}{_undecided(leads)}{_ruled_out(draft)}."
    if status is Status.INSUFFICIENT:
        return "There is too little here to judge the run by."
    told = " What you report shows no cause in these artifacts." if run.symptoms else ""
    return f"No problem found: {len(draft.checked)} checks on {_extent(run)}.{told}"


def _undecided(leads: Sequence[str]) -> str:
    if not leads:
        return ""
    if len(leads) == 1:
        return f"; {leads[0]} is possible, the evidence does not decide"
    return f"; the evidence does not decide between {_listing(leads)}"


def _ruled_out(draft: Diagnosis) -> str:
    refuted = [h.cause for h in draft.hypotheses if is_refuted(h)]
    return f"; experiments rule out {_listing(refuted)}" if refuted else ""


def _cause_summary(roots: Sequence[Hypothesis]) -> str:
    first = roots[0]
    verb = "" if first.confidence > SHOWN_FROM else " (fits the evidence, not confirmed)"
    if first.confirmed:
        verb = " (confirmed by experiment)"
    others = f". Also {_listing([h.cause for h in roots[1:]])}" if len(roots) > 1 else ""
    symptom = next((f.claim for f in first.findings if f.is_symptom), None)
    because = f". {symptom[0].upper()}{symptom[1:].rstrip('.')}" if symptom else ""
    return f"{first.issue}{verb}{because}{others}."


def _listing(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _extent(run: Run) -> str:
    loss = run.main_loss() or run.main_loss("val")
    if loss is None:
        return f"{len(run.series)} metrics and {len(run.sources)} source files"
    return f"{len(run.series)} metrics over {len(loss)} points of {loss.origin.name}"
