"""What a diagnosis comes to: its status, and the sentence that stands first."""

from __future__ import annotations

from collections.abc import Sequence

from traindx.diagnosis.health import Health, health_of
from traindx.diagnosis.hypotheses import is_refuted
from traindx.model.findings import (
    EXPERIMENT,
    LISTED_FROM,
    SHOWN_FROM,
    Diagnosis,
    Finding,
    Hypothesis,
    Status,
    Strength,
)
from traindx.model.run import Run


def status_of(draft: Diagnosis, run: Run, removed: frozenset[int] = frozenset()) -> Status:
    """Return the status; `removed` holds the ids of findings that a confirmed change takes away."""
    symptoms = [f for f in draft.findings if f.is_symptom and f.strength is not Strength.WEAK]
    roots = draft.root_causes
    if not roots:
        is_faultless = not symptoms and not any(f.shows for f in draft.findings)
        is_clean = is_faultless and not run.symptoms and health_of(run).is_earned
        return Status.HEALTHY if is_clean else Status.INSUFFICIENT
    explained = {id(f) for h in draft.hypotheses if h.confidence >= LISTED_FROM for f in h.findings}
    all_explained = all(id(f) in explained | removed for f in symptoms)
    is_shown = all(h.confidence > SHOWN_FROM for h in roots)
    return Status.COMPLETE if all_explained and is_shown else Status.PARTIAL


def summary_of(draft: Diagnosis, status: Status, run: Run) -> str:
    """Return the sentence that a report begins with."""
    roots = draft.root_causes
    if roots:
        return _cause_summary(roots)
    symptoms = sorted((f for f in draft.findings if f.is_symptom), key=lambda f: f.strength.rank)
    if status is Status.INSUFFICIENT and symptoms:
        suggested = [h for h in draft.hypotheses if h.cause in symptoms[-1].suggests]
        leads = [h.cause for h in suggested if not is_refuted(h)][:3]
        told = f"{_undecided(leads)}{_ruled_out(draft)}{_standing(draft)}"
        return f"{symptoms[-1].claim.rstrip('.')}{told}."
    health = health_of(run)
    if status is Status.INSUFFICIENT and _standing(draft):
        return f"Not decided{_standing(draft)}."
    if status is Status.INSUFFICIENT:
        return _unearned(health, run)
    seen = _listing(health.seen)
    return f"No problem found: {seen}; {len(draft.checked)} checks on {_extent(run)}."


def _unearned(health: Health, run: Run) -> str:
    """Say why a run in which no rule found a fault gets no clean bill."""
    if health.odd:
        return f"No known fault, but something is odd: {'; '.join(health.odd)}."
    if run.symptoms:
        seen = f" What was seen: {_listing(health.seen)}." if health.seen else ""
        return f"What you report shows no cause in these artifacts.{seen}"
    if not run.series and not run.sources and not run.failures:
        return "There is too little here to judge the run by."
    told = f"Nothing found, but little could be judged. Not seen: {'; '.join(health.unseen)}."
    return f"{told} To judge more: {'; '.join(health.wanted)}." if health.wanted else told


def _undecided(leads: Sequence[str]) -> str:
    if not leads:
        return ""
    if len(leads) == 1:
        return f"; {leads[0]} is possible, the evidence does not decide"
    return f"; the evidence does not decide between {_listing(leads)}"


def _ruled_out(draft: Diagnosis) -> str:
    refuted = [h.cause for h in draft.hypotheses if is_refuted(h) and not _shown(h)]
    return f"; experiments rule out {_listing(refuted)}" if refuted else ""


def _standing(draft: Diagnosis) -> str:
    """Say what is there although an experiment does not show that it matters."""
    there = [_shown(h)[0] for h in draft.hypotheses if is_refuted(h) and _shown(h)]
    if not there:
        return ""
    claims = "; ".join(f.claim.rstrip(".") for f in there[:2])
    return f"; {claims}: an experiment does not show that this is what ails the run"


def _shown(hypothesis: Hypothesis) -> list[Finding]:
    shown = (f for f in hypothesis.findings if f.shows == hypothesis.cause)
    return [f for f in shown if f.detector != EXPERIMENT]


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
