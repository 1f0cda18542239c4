"""Which hypotheses are put to the test, and in which order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from traindx.causes import cause_named, consequences_of
from traindx.experiments.changes import Change
from traindx.experiments.verification.observed_rerun import is_runtime, is_suffered
from traindx.experiments.verification.plans import changes_for, plan_of
from traindx.experiments.verification.symptoms import Symptom, symptoms_of
from traindx.experiments.verification.verdicts import Harm
from traindx.model.findings import LISTED_FROM, Diagnosis, Hypothesis
from traindx.model.run import Run

LEAST = 0.10  # a confidence below it is not worth a rerun
MOST = 6  # hypotheses


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A hypothesis to be tested: by which changes, and what has to go."""

    hypothesis: Hypothesis
    changes: tuple[Change, ...]
    symptoms: tuple[Symptom, ...]
    is_asked_for: bool = False
    is_shown: bool = False  # by what the run did, not by its source alone

    @property
    def cause(self) -> str:
        return self.hypothesis.cause

    @property
    def harm(self) -> Harm:
        return plan_of(self.cause).harm

    @property
    def stands(self) -> bool:
        """Tell whether something shows the cause directly: a line of the source, a step."""
        return any(f.shows == self.cause for f in self.hypothesis.findings)

    @property
    def is_generic(self) -> bool:
        return plan_of(self.cause).is_generic

    @property
    def is_grounded(self) -> bool:
        """Tell whether there is anything that it could explain."""
        return bool(self.symptoms or self.hypothesis.findings)

    def shares_symptom(self, other: Candidate) -> bool:
        """Tell whether both would explain something that is the same."""
        own = {(s.detector, s.crash) for s in self.symptoms}
        return bool(own & {(s.detector, s.crash) for s in other.symptoms})


def candidates_of(
    run: Run,
    diagnosis: Diagnosis,
    causes: Sequence[str] = (),
    done: Collection[str] = (),
) -> list[Candidate]:
    """Return the hypotheses to test, specific changes first, each group by confidence.

    Named causes are tested whatever their confidence. A change that helps against many causes is
    tested after the causes that the diagnosis lists, asked for or not: else it would take their
    place.
    """
    known = {h.cause: h for h in diagnosis.hypotheses}
    if causes:
        asked = [known.get(c) or _unsuggested(c, run) for c in causes if c not in done]
        generic = [h.confidence for h in asked if not _is_specific(h)]
        rivals = [
            h
            for h in diagnosis.root_causes
            if generic and (_is_specific(h) or h.confidence > min(generic))
        ]
        chosen = [*asked, *rivals]
    else:
        chosen = [
            h
            for h in diagnosis.hypotheses
            if h.confidence >= LEAST and h.cause not in diagnosis.folded and _has_a_case(h)
        ]
    once = {h.cause: h for h in chosen if h.cause not in done}
    made = [_candidate(h, run, diagnosis, causes) for h in once.values()]
    made.sort(key=lambda c: (c.is_generic, -c.hypothesis.confidence))
    return made if causes else made[:MOST]


def _candidate(
    hypothesis: Hypothesis, run: Run, diagnosis: Diagnosis, causes: Sequence[str]
) -> Candidate:
    cause = hypothesis.cause
    return Candidate(
        hypothesis,
        changes_for(hypothesis, run),
        symptoms_of(hypothesis, diagnosis, run),
        cause in causes,
        any(f.shows == cause and is_runtime(f, run) for f in hypothesis.findings),
    )


def _unsuggested(name: str, run: Run) -> Hypothesis:
    cause = cause_named(name)
    return Hypothesis(
        cause=name,
        confidence=0.0,
        issue=cause.issue_in(run),
        severity=cause.severity,
        remedies=cause.remedies_for(run),
        specialist=cause.specialist,
        confirm_by=cause.confirm_in(run),
    )


def _is_specific(hypothesis: Hypothesis) -> bool:
    return not plan_of(hypothesis.cause).is_generic


def _has_a_case(hypothesis: Hypothesis) -> bool:
    """A cause that hurts nobody is not worth a rerun."""
    return hypothesis.confidence >= LISTED_FROM or any(f.is_symptom for f in hypothesis.findings)


def still_suffering(candidates: Sequence[Candidate], run: Run) -> list[Candidate]:
    """Return those that explain something which the run itself shows."""
    return [c for c in candidates if any(is_suffered(f, run) for f in c.hypothesis.findings)]


def open_rivals(
    candidate: Candidate, all_of_them: Sequence[Candidate], settled: Collection[str]
) -> list[str]:
    """Return the causes that may rather be behind it and that no test has settled.

    What the run shows may be behind anything; what merely fits, behind its own symptoms.
    """
    return [
        c.cause
        for c in all_of_them
        if c.cause not in settled
        and c.cause != candidate.cause
        and c.cause not in consequences_of(candidate.cause)
        and c.harm is Harm.LEARNING
        and (c.is_shown or _fits_better(c, candidate))
    ]


def _fits_better(rival: Candidate, candidate: Candidate) -> bool:
    is_likelier = rival.hypothesis.confidence > candidate.hypothesis.confidence
    return is_likelier and rival.shares_symptom(candidate)
