"""What a run suffers from, in a form that can be looked for again in another run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traindx.experiments.verification.observed_rerun import (
    Observation,
    RerunCrash,
    crash_of,
    is_about_crash,
    is_same_crash,
    is_suffered,
)
from traindx.model.findings import Diagnosis, Finding, Hypothesis
from traindx.model.run import Run


@dataclass(frozen=True, slots=True)
class Symptom:
    """A finding to look for again by its detector, or a crash by its type and place."""

    says: str
    detector: str = ""
    causes: frozenset[str] = frozenset()
    onset: float | None = None
    crash: RerunCrash | None = None


def symptoms_of(hypothesis: Hypothesis, diagnosis: Diagnosis, run: Run) -> tuple[Symptom, ...]:
    """Return what a hypothesis is to explain: its own symptoms, or else all that there are.

    A hypothesis that rests on the source alone has no symptom of its own to lose: what the run
    suffers from has to go, or else the outcome decides.
    """
    own = _symptoms(hypothesis.findings, run)
    return own or _symptoms(diagnosis.findings, run)


def _symptoms(findings: Iterable[Finding], run: Run) -> tuple[Symptom, ...]:
    found: dict[str, Symptom] = {}
    crash = crash_of(run)
    for finding in findings:
        if not is_suffered(finding, run):
            continue
        if is_about_crash(finding, run):
            if crash is not None:
                found["crash"] = Symptom(crash.words, onset=finding.onset, crash=crash)
            continue
        causes = frozenset((*finding.suggests, *([finding.shows] if finding.shows else [])))
        made = Symptom(finding.claim, finding.detector, causes, finding.onset)
        found.setdefault(finding.detector, made)
    return tuple(found.values())


def is_present(symptom: Symptom, seen: Observation) -> bool:
    """Tell whether a rerun shows a symptom."""
    if symptom.crash is not None:
        return seen.crash is not None and is_same_crash(symptom.crash, seen.crash, seen.run)
    return any(_is_same(symptom, f) for f in seen.diagnosis.findings)


def _is_same(symptom: Symptom, finding: Finding) -> bool:
    if finding.detector != symptom.detector or not finding.is_symptom:
        return False
    causes = {*finding.suggests, *([finding.shows] if finding.shows else [])}
    return not symptom.causes or bool(causes & symptom.causes)


def present(symptoms: Sequence[Symptom], seen: Observation) -> tuple[Symptom, ...]:
    """Return those of the symptoms that a rerun shows."""
    return tuple(s for s in symptoms if is_present(s, seen))
