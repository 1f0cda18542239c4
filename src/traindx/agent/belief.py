"""How far a specialist's word counts beside the engine's: documented ceilings, nothing hidden.

The engine's confidences are calibrated; a language model's are not. So its word moves belief, and
never settles it:

- A piece of evidence that was struck out costs its share of half of the confidence. A cause
  with no evidence left is dropped.
- A cause is at most `LEAP` above what the engine believes of it, and at most `FITTING`, unless one
  of the engine's rules shows it directly; then the engine's confidence is the ceiling.
- A cause that the engine has nothing for or against is at most `UNCONSIDERED`.
- A cause that rests on mere text, or on a run in which neither a rule nor the user saw a symptom,
  is at most `OPEN`: it is shown among the open hypotheses and not as a root cause.
- What the engine has listed stays listed, and what its rules show keeps its confidence. Less belief
  takes away `LEAP` at most, and only with counter-evidence that was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from traindx.agent.citations import Checked, Verifier
from traindx.agent.schema import Opinion, SpecialistAnswer
from traindx.causes import all_causes, cause_named
from traindx.diagnosis.hypotheses import fold
from traindx.diagnosis.weights import WEIGHTS
from traindx.model.findings import (
    LISTED_FROM,
    SHOWN_FROM,
    Diagnosis,
    Finding,
    Hypothesis,
    Location,
    Status,
    Strength,
)
from traindx.model.run import Run
from traindx.report.words import clean

SPECIALIST = "specialist"  # stands where the name of a detector stands
LEAP = 0.25
FITTING = 0.89  # what fits stays below what is shown
UNCONSIDERED = 0.75
OPEN = WEIGHTS.highest_without_symptom


@dataclass(frozen=True, slots=True)
class Ruling:
    """What became of one cause that the specialist named."""

    opinion: Opinion
    confidence: float
    evidence: tuple[Checked, ...] = ()
    against: tuple[Checked, ...] = ()
    location: Location | None = None
    limits: tuple[str, ...] = ()
    why_dropped: str = ""

    @property
    def verified(self) -> tuple[Checked, ...]:
        return tuple(c for c in self.evidence if not c.is_struck)

    @property
    def struck(self) -> tuple[Checked, ...]:
        return tuple(c for c in (*self.evidence, *self.against) if c.is_struck)


def rule_on(answer: SpecialistAnswer, verifier: Verifier) -> tuple[Ruling, ...]:
    """Check everything an answer cites and say how far each of its causes counts."""
    rulings: dict[str, Ruling] = {}
    for opinion in answer.opinions:
        rulings.setdefault(opinion.cause, _rule(opinion, verifier))
    return tuple(sorted(rulings.values(), key=lambda r: -r.confidence))


def _rule(opinion: Opinion, verifier: Verifier) -> Ruling:
    if opinion.cause not in all_causes():
        why = f"no cause in the catalogue is called {clean(opinion.cause, 60)!r}"
        return Ruling(opinion, 0.0, why_dropped=why)
    evidence = verifier.check_all(opinion.evidence)
    ruling = Ruling(opinion, 0.0, evidence, verifier.check_all(opinion.against))
    limits: list[str] = []
    if opinion.location is not None:
        file, line = opinion.location
        found, why = verifier.check_place(file, line)
        ruling = replace(ruling, location=Location(found, line, line) if found else None)
        limits += [f"location struck out: {why}"] if why else []
    if not ruling.verified:
        return replace(ruling, why_dropped="none of its evidence was found", limits=tuple(limits))
    misses = len(ruling.struck) + bool(opinion.location and ruling.location is None)
    pieces = len(evidence) + len(ruling.against) + bool(opinion.location)
    confidence = opinion.confidence * (1 - 0.5 * misses / pieces)
    if misses:
        limits.append(f"{misses} of {pieces} citations struck out: lowered to {confidence:.2f}")
    ceiling, why = _ceiling(ruling, verifier)
    if confidence > ceiling:
        limits.append(f"held to {ceiling:.2f}: {why}")
    return replace(ruling, confidence=min(confidence, ceiling), limits=tuple(limits))


def _ceiling(ruling: Ruling, verifier: Verifier) -> tuple[float, str]:
    """Return the highest confidence that a cause may have on the specialist's word, and why."""
    engine, run = verifier.engine, verifier.lookup.run
    known = next((h for h in engine.hypotheses if h.cause == ruling.opinion.cause), None)
    if known is not None and any(f.shows == known.cause for f in known.findings):
        return known.confidence, "this is what the engine's rules show"
    ceiling, why = UNCONSIDERED, "none of the engine's rules suggests it"
    if known is not None:
        ceiling = min(known.confidence + LEAP, FITTING)
        why = f"the engine has it at {known.confidence:.2f}, and no rule shows it directly"
        if not known.opposing and ceiling < UNCONSIDERED:
            ceiling = UNCONSIDERED
    if not any(c.is_observed for c in ruling.verified):
        return min(ceiling, OPEN), "it rests on mere text, not on what the run did or ran"
    if not run.symptoms and not any(f.is_symptom for f in engine.findings):
        return min(ceiling, OPEN), "neither a rule nor the user saw a symptom"
    return ceiling, why


def merge(run: Run, engine: Diagnosis, rulings: Sequence[Ruling]) -> Diagnosis:
    """Return the engine's diagnosis with what the specialist's checked evidence adds to it."""
    accepted = {r.opinion.cause: r for r in rulings if not r.why_dropped}
    added = {cause: _findings(cause, ruling) for cause, ruling in accepted.items()}
    known = {h.cause: h for h in engine.hypotheses}
    hypotheses = []
    for name in dict.fromkeys((*known, *accepted)):
        hypothesis = known.get(name) or _new(name, run)
        if name in accepted:
            hypothesis = _moved(hypothesis, accepted[name], added[name], is_new=name not in known)
        hypotheses.append(hypothesis)
    hypotheses.sort(key=lambda h: (-round(h.confidence, 3), -h.severity.rank, h.cause))
    folded = fold(hypotheses)
    merged = replace(
        engine,
        hypotheses=tuple(
            replace(h, consequences=tuple(c for c, root in folded.items() if root == h.cause))
            for h in hypotheses
        ),
        findings=(*engine.findings, *(f for found in added.values() for f in found)),
        folded=folded,
    )
    return _concluded(merged, engine)


def _new(name: str, run: Run) -> Hypothesis:
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


def _moved(
    hypothesis: Hypothesis, ruling: Ruling, added: Sequence[Finding], *, is_new: bool
) -> Hypothesis:
    confidence = ruling.confidence
    if not is_new:
        confidence = max(confidence, _floor(hypothesis, ruling))
    return replace(
        hypothesis,
        confidence=confidence,
        findings=(*hypothesis.findings, *(f for f in added if f.suggests)),
        opposing=(*hypothesis.opposing, *(f for f in added if f.against)),
    )


def _floor(hypothesis: Hypothesis, ruling: Ruling) -> float:
    """Return how much of the engine's belief a specialist's doubt leaves."""
    own = hypothesis.confidence
    is_countered = any(c.is_observed and not c.is_struck for c in ruling.against)
    if not is_countered or any(f.shows == hypothesis.cause for f in hypothesis.findings):
        return own
    return max(own - LEAP, LISTED_FROM if own >= LISTED_FROM else 0.0)


def _findings(cause: str, ruling: Ruling) -> list[Finding]:
    """Return the specialist's own checked evidence; what the engine had found is there already."""
    place = clean(cause, 60)
    for_it = tuple(e for c in ruling.verified if not c.is_rule for e in c.evidence)
    against = tuple(
        e for c in ruling.against if not c.is_struck and not c.is_rule for e in c.evidence
    )
    found = []
    if for_it:
        claim = f"The specialist sees {place} in this"
        finding = Finding(claim, Strength.WEAK, for_it, {cause: Strength.WEAK})
        found.append(replace(finding, location=ruling.location, detector=SPECIALIST))
    if against:
        claim = f"The specialist sees this speak against {place}"
        finding = Finding(claim, Strength.WEAK, against, against={cause: Strength.WEAK})
        found.append(replace(finding, detector=SPECIALIST))
    return found


def _concluded(merged: Diagnosis, engine: Diagnosis) -> Diagnosis:
    """Return the diagnosis with a status and a summary that its root causes bear out."""
    before = [h.cause for h in engine.root_causes]
    after = [h.cause for h in merged.root_causes]
    if after == before or not after:
        return merged
    first = merged.root_causes[0]
    others = f"; also {', '.join(after[1:])}" if after[1:] else ""
    by = "" if first.cause in before else " in the specialist's view"
    doubt = "" if first.confidence > SHOWN_FROM else " (fits the evidence, not confirmed)"
    summary = f"{first.issue}{by}{doubt}{others}."
    new = [h for h in merged.root_causes if h.cause not in before]
    asked = [f"To decide on {h.cause}: {h.confirm_by}" for h in new if h.confirm_by]
    questions = tuple(dict.fromkeys((*asked, *engine.questions)))
    return replace(merged, status=Status.PARTIAL, summary=summary, questions=questions)


def disagreements(engine: Diagnosis, rulings: Sequence[Ruling]) -> list[str]:
    """Return in words where the specialist and the engine part company."""
    named = {r.opinion.cause: r for r in rulings}
    known = {h.cause: h for h in engine.hypotheses}
    lines = []
    ranked = [r.opinion.cause for r in sorted(rulings, key=lambda r: -r.opinion.confidence)]
    roots = [h.cause for h in engine.root_causes]
    if roots and ranked and roots[0] != ranked[0]:
        lines.append(f"The engine puts {roots[0]} first, the specialist {clean(ranked[0], 60)}.")
    for cause in roots:
        if cause not in named:
            lines.append(
                f"The engine has {cause} as a root cause; the specialist does not name it."
            )
    for cause, ruling in named.items():
        said, hypothesis = ruling.opinion.confidence, known.get(cause)
        if cause not in all_causes():
            lines.append(f"The specialist names {clean(cause, 60)}, which is no known cause.")
        elif hypothesis is None:
            lines.append(f"The specialist has {cause} at {said:.2f}; no rule suggests it.")
        elif abs(said - hypothesis.confidence) > LEAP or (said >= LISTED_FROM) != (cause in roots):
            had = hypothesis.confidence
            lines.append(f"The specialist has {cause} at {said:.2f}, the engine at {had:.2f}.")
    return lines
