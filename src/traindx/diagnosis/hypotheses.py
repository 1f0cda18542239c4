"""Hypotheses: causes with what speaks for and against them, ranked, and what follows from what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from traindx.analysis.program.merged_patches import merged
from traindx.causes import Cause, all_causes, consequences_of
from traindx.causes.facts import place_of
from traindx.diagnosis.weights import confidences
from traindx.model.findings import (
    EXPERIMENT,
    LISTED_FROM,
    SHOWN_FROM,
    Finding,
    Hypothesis,
    Strength,
)
from traindx.model.run import Run


def weigh(findings: Sequence[Finding], run: Run) -> list[Hypothesis]:
    """Return every suggested cause with its confidence, best first."""
    causes = all_causes()
    believed = confidences(findings)
    hypotheses = (hypothesis_of(causes[name], p, findings, run) for name, p in believed.items())
    return sorted(hypotheses, key=rank_of)


def rank_of(hypothesis: Hypothesis) -> tuple[float, int, str]:
    """Return what hypotheses are ordered by: the likeliest first, then the worst."""
    return -round(hypothesis.confidence, 3), -hypothesis.severity.rank, hypothesis.cause


def hypothesis_of(
    cause: Cause, confidence: float, findings: Sequence[Finding], run: Run
) -> Hypothesis:
    """Return a cause with what speaks for and against it, and its remedies for this run."""
    named = (f for f in findings if cause.name in f.suggests or f.shows == cause.name)
    # what shows the cause and says how to mend it comes first, whatever its rule is called
    supporting = tuple(sorted(named, key=lambda f: (f.shows != cause.name, f.patch is None)))
    remedies = cause.remedies_for(run)
    first = next((f for f in supporting if f.patch), None)
    same = [f.patch for f in supporting if first is not None and f.detector == first.detector]
    patch = merged([p for p in same if p])
    if patch and remedies:
        remedies = (replace(remedies[0], patch=patch), *remedies[1:])
    return Hypothesis(
        cause=cause.name,
        confidence=confidence,
        issue=cause.issue_in(run),
        severity=cause.severity,
        findings=supporting,
        opposing=tuple(f for f in findings if cause.name in f.against),
        remedies=remedies,
        specialist=cause.specialist,
        confirm_by=cause.confirm_in(run),
        place=place_of(run, cause.name),
    )


def fold(hypotheses: Sequence[Hypothesis]) -> dict[str, str]:
    """Return, for each cause that only follows from a listed one, the cause it follows from."""
    folded: dict[str, str] = {}
    for root in hypotheses:
        if root.confidence < LISTED_FROM or root.cause in folded:
            continue
        for other in hypotheses:
            follows = other.cause in consequences_of(root.cause) and _is_supported(other)
            if follows and other.cause not in folded and _may_follow(other, root):
                folded[other.cause] = root.cause
    return folded


def _is_supported(hypothesis: Hypothesis) -> bool:
    """A cause that is only thought of, on weak grounds, is no consequence to report."""
    for finding in hypothesis.findings:
        strength = finding.suggests.get(hypothesis.cause, Strength.STRONG)
        if strength is not Strength.WEAK:
            return True
    return False


def _may_follow(effect: Hypothesis, root: Hypothesis) -> bool:
    if is_refuted(effect) or (effect.confirmed and not root.confirmed):
        return False  # what is tested outranks what is argued
    if effect.confidence > SHOWN_FROM >= root.confidence:
        return False  # what is shown outranks what merely fits
    if effect.onset is None or root.onset is None:
        return True
    return effect.onset >= root.onset


def with_consequences(hypothesis: Hypothesis, folded: Mapping[str, str]) -> Hypothesis:
    """Return a hypothesis with the causes that are folded into it."""
    consequences = (c for c, root in folded.items() if root == hypothesis.cause)
    return replace(hypothesis, consequences=tuple(consequences))


def asides_of(
    hypotheses: Sequence[Hypothesis], findings: Sequence[Finding], run: Run
) -> frozenset[str]:
    """Return the causes that are there and cannot be why the run is broken."""
    is_broken = any(f.is_symptom and f.strength is not Strength.WEAK for f in findings)
    if not is_broken and not run.symptoms:
        return frozenset()
    reported = " ".join(run.symptoms).lower().split()
    return frozenset(h.cause for h in hypotheses if _is_aside(h, reported))


def _is_aside(hypothesis: Hypothesis, reported: Sequence[str]) -> bool:
    cause = all_causes().get(hypothesis.cause)
    if cause is None or not cause.only_harms or hypothesis.confirmed:
        return False
    is_felt = any(f.is_symptom for f in hypothesis.findings)
    return not is_felt and not any(w.startswith(cause.only_harms) for w in reported)


def is_refuted(hypothesis: Hypothesis) -> bool:
    """Tell whether an experiment speaks against a cause, and none for it."""
    return any(f.detector == EXPERIMENT for f in hypothesis.opposing)
