"""From findings to belief: select, run, weigh, rank, and ask. The only home of confidence.

Each symptom is a differential of its own: the causes that its findings suggest compete with each
other and with "something else". A cause that is shown directly does not compete; it takes the
symptom from its rivals. A cause that follows from a listed one is folded into it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

from traindx.causes import Cause, all_causes, consequences_of
from traindx.evidence import (
    EXPERIMENT,
    LISTED_FROM,
    SHOWN_FROM,
    Diagnosis,
    Experiment,
    Finding,
    Hypothesis,
    Status,
    Strength,
    Verdict,
)
from traindx.gathering import gather, without_echoes
from traindx.model import Run
from traindx.names import HIGHER_IS_BETTER, LOWER_IS_BETTER, kind_of
from traindx.outcomes import finding_of, removed_by
from traindx.source import project_of
from traindx.source.settings import place_of_setting


@dataclass(frozen=True, slots=True)
class Weights:
    """How far findings move belief, in log-odds, and how far belief may go."""

    prior: float
    weak: float
    moderate: float
    strong: float
    direct: float
    something_else: float  # the odds that a symptom has a cause nobody suggested
    highest: float  # short of an experiment
    highest_fitting: float  # without direct evidence
    highest_without_symptom: float  # a risk that hurts nobody yet is a remark

    def of(self, strength: Strength) -> float:
        """Return how far a finding of that strength moves belief."""
        return float(getattr(self, strength.value))


# One moderate finding leaves a cause open among its rivals, one strong or two moderate findings
# make it fit, and only direct evidence lifts it over 0.9. Fitted with `bench.accuracy.fitting` on
# incidents that no rule had been made for, and rounded.
WEIGHTS = Weights(
    prior=-1.9,
    weak=0.7,
    moderate=1.6,
    strong=3.3,
    direct=4.6,
    something_else=1.0,
    highest=0.97,
    highest_fitting=0.85,
    highest_without_symptom=0.65,
)
# Whatever was argued, an experiment decides. It is not certain either: a few seeds over a few steps
# stand for the whole run, and what a change took away may come back later.
HIGHEST_TESTED = 0.995
HIGHEST_REFUTED = 0.03


def diagnose(run: Run, *, deadline: float | None = None) -> Diagnosis:
    """Diagnose a run with every detector that has what it needs, until the deadline."""
    started = time.monotonic()
    gathered = gather(run, deadline=deadline)
    gathered.findings = without_echoes(gathered.findings)
    hypotheses = weigh(gathered.findings, run)
    folded = fold(hypotheses)
    hypotheses = [_with_consequences(h, folded) for h in hypotheses]
    draft = Diagnosis(
        status=Status.HEALTHY,
        summary="",
        hypotheses=tuple(hypotheses),
        findings=tuple(gathered.findings),
        checked=tuple(gathered.checked),
        skipped=tuple(gathered.skipped),
        failed=tuple(gathered.failed),
        artifacts=run.artifacts,
        folded=folded,
    )
    status = _status(draft, run)
    return replace(
        draft,
        status=status,
        summary=_summary(draft, status, run),
        questions=tuple(_questions(draft, status, run)),
        duration_s=time.monotonic() - started,
    )


def judge(
    diagnosis: Diagnosis, experiments: Sequence[Experiment], run: Run | None = None
) -> Diagnosis:
    """Let experiments decide: what they confirm and refute, and what that means for the rest.

    Judging again, with more experiments, starts from the same findings. The run fills in the words
    for a cause that nobody suggested before it was tested.
    """
    told = tuple(dict.fromkeys((*diagnosis.experiments, *experiments)))
    seen = tuple(f for f in diagnosis.findings if f.detector != EXPERIMENT)
    trial = _Trials(told, seen)
    if not trial.decided:
        return replace(diagnosis, experiments=told)
    made = [finding_of(e, diagnosis) for e in told if not trial.is_overruled(e)]
    findings = (*seen, *(f for f in made if f is not None))
    known = {h.cause: h for h in diagnosis.hypotheses}
    run = run or Run(artifacts=diagnosis.artifacts)
    names = dict.fromkeys((*known, *trial.decided))
    hypotheses = [trial.judged(known.get(name), name, findings, run) for name in names]
    hypotheses.sort(key=_rank)
    folded = fold(hypotheses)
    hypotheses = [_with_consequences(h, folded) for h in hypotheses]
    draft = replace(
        diagnosis,
        hypotheses=tuple(hypotheses),
        findings=findings,
        folded=folded,
        experiments=told,
    )
    status = _status(draft, run, frozenset(map(id, trial.taken)))
    return replace(
        draft,
        status=status,
        summary=_summary(draft, status, run),
        questions=tuple(_questions(draft, status, run)),
    )


class _Trials:
    """Which causes experiments decided on, and the symptoms that this settles."""

    def __init__(self, experiments: Sequence[Experiment], findings: Sequence[Finding]) -> None:
        self.findings = findings
        by = {v: {e.cause for e in experiments if e.verdict is v} for v in Verdict}
        self.confirmed = by[Verdict.CONFIRMED]
        # where one change does not help and another one does, the cause is the cause
        self.refuted = by[Verdict.REFUTED] - self.confirmed
        self.decided = self.confirmed | self.refuted
        proven = {(e.change, e.patch) for e in experiments if e.verdict is Verdict.CONFIRMED}
        # what a proven change took away is explained, also where it was laid to another cause
        shown = [e for e in experiments if (e.change, e.patch) in proven]
        gone = frozenset().union(*map(removed_by, shown))
        self.taken = [f for f in findings if f.is_symptom and self._is_taken(f, gone)]

    def _is_taken(self, finding: Finding, gone: frozenset[str]) -> bool:
        """A confirmed cause takes the symptoms it may explain, and those its remedy takes away."""
        return bool(
            self.confirmed & {*finding.suggests, finding.shows}
            or gone & {finding.claim, finding.detector}
        )

    def is_overruled(self, experiment: Experiment) -> bool:
        return experiment.verdict is Verdict.REFUTED and experiment.cause in self.confirmed

    def judged(
        self, known: Hypothesis | None, name: str, findings: Sequence[Finding], run: Run
    ) -> Hypothesis:
        """Return a cause as it stands after the experiments."""
        made = known
        if made is None:
            cause = all_causes().get(name)
            made = _hypothesis(cause, 0.0, findings, run) if cause else Hypothesis(name, 0.0)
        own = [f for f in findings if f.detector == EXPERIMENT]
        return replace(
            made,
            confidence=self._confidence(name, made.confidence),
            confirmed=name in self.confirmed,
            findings=(*_argued(made.findings), *(f for f in own if f.shows == name)),
            opposing=(*_argued(made.opposing), *(f for f in own if name in f.against)),
        )

    def _confidence(self, name: str, before: float) -> float:
        if name in self.confirmed:
            return HIGHEST_TESTED
        if not self._is_touched(name):
            return before
        taken = set(map(id, self.taken))
        left = [f for f in self.findings if id(f) not in taken]
        rivals = {c for f in left for c in f.suggests} - self.refuted
        odds = dict.fromkeys(self.refuted, 0.0)
        odds |= {c: exp(_log_odds(c, left)) for c in {*rivals, name}}
        is_shown = any(f.shows == name for f in left)
        if not is_shown and name not in rivals:
            return HIGHEST_REFUTED  # nothing is left that it would explain
        belief = _confidence(name, left, odds, is_shown=is_shown)
        return min(belief, HIGHEST_REFUTED) if name in self.refuted else belief

    def _is_touched(self, name: str) -> bool:
        """Tell whether a cause was tested, or competes for a symptom that is settled by a test."""
        return name in self.refuted or any(
            f.is_symptom
            and name in {*f.suggests, f.shows}
            and (any(f is t for t in self.taken) or self.refuted & {*f.suggests, f.shows})
            for f in self.findings
        )


def _argued(findings: Iterable[Finding]) -> Iterator[Finding]:
    return (f for f in findings if f.detector != EXPERIMENT)


def weigh(findings: Sequence[Finding], run: Run) -> list[Hypothesis]:
    """Return every suggested cause with its confidence, best first."""
    causes = all_causes()
    believed = confidences(findings)
    hypotheses = (_hypothesis(causes[name], p, findings, run) for name, p in believed.items())
    return sorted(hypotheses, key=_rank)


def confidences(findings: Sequence[Finding], weights: Weights = WEIGHTS) -> dict[str, float]:
    """Return the confidence in every cause that the findings suggest or show."""
    suggested = {c for f in findings for c in (*f.suggests, *([f.shows] if f.shows else []))}
    odds = {c: exp(_log_odds(c, findings, weights)) for c in suggested}
    shown = {f.shows for f in findings if f.shows}
    return {c: _confidence(c, findings, odds, weights, is_shown=c in shown) for c in suggested}


def _rank(hypothesis: Hypothesis) -> tuple[float, int, str]:
    return -round(hypothesis.confidence, 3), -hypothesis.severity.rank, hypothesis.cause


def _log_odds(cause: str, findings: Iterable[Finding], weights: Weights = WEIGHTS) -> float:
    total = weights.prior
    for finding in findings:
        if finding.shows == cause:
            total += weights.direct
        elif cause in finding.suggests:
            total += weights.of(finding.suggests[cause])
        if cause in finding.against:
            total -= weights.of(finding.against[cause])
    return total


def _confidence(
    cause: str,
    findings: Iterable[Finding],
    odds: Mapping[str, float],
    weights: Weights = WEIGHTS,
    *,
    is_shown: bool,
) -> float:
    own = odds[cause]
    alone = own / (own + weights.something_else)
    if is_shown:
        return min(alone, weights.highest)
    shares = [
        own / (weights.something_else + sum(odds[c] for c in finding.suggests))
        for finding in findings
        if finding.is_symptom and cause in finding.suggests
    ]
    if not shares:
        return min(alone, weights.highest_without_symptom)
    return min(max(shares), weights.highest_fitting)


def _hypothesis(
    cause: Cause, confidence: float, findings: Sequence[Finding], run: Run
) -> Hypothesis:
    supporting = tuple(f for f in findings if cause.name in f.suggests or f.shows == cause.name)
    remedies = cause.remedies_for(run)
    patch = next((f.patch for f in supporting if f.patch), None)
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
        confirm_by=cause.confirm_by,
        place=place_of_setting(project_of(run), cause.name) if run.sources else None,
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


def _with_consequences(hypothesis: Hypothesis, folded: Mapping[str, str]) -> Hypothesis:
    consequences = (c for c, root in folded.items() if root == hypothesis.cause)
    return replace(hypothesis, consequences=tuple(consequences))


def is_refuted(hypothesis: Hypothesis) -> bool:
    """Tell whether an experiment speaks against a cause, and none for it."""
    return any(f.detector == EXPERIMENT for f in hypothesis.opposing)


def _status(draft: Diagnosis, run: Run, removed: frozenset[int] = frozenset()) -> Status:
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


def _summary(draft: Diagnosis, status: Status, run: Run) -> str:
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
    others = f"; also {_listing([h.cause for h in roots[1:]])}" if len(roots) > 1 else ""
    symptom = next((f.claim for f in first.findings if f.is_symptom), None)
    because = f": {symptom[0].lower()}{symptom[1:].rstrip('.')}" if symptom else ""
    return f"{first.issue}{verb}{because}{others}."


def _listing(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _extent(run: Run) -> str:
    loss = run.main_loss() or run.main_loss("val")
    if loss is None:
        return f"{len(run.series)} metrics and {len(run.sources)} source files"
    return f"{len(run.series)} metrics over {len(loss)} points of {loss.origin.name}"


def _questions(draft: Diagnosis, status: Status, run: Run) -> list[str]:
    """Return what to ask for, most decisive first."""
    questions: dict[str, None] = {}
    if status is Status.HEALTHY and run.symptoms:
        missing = sorted({s.how for s in draft.skipped if s.needs}, key=len)[:3]
        return [f"If the trouble persists, any of these would help: {'; '.join(missing)}"]
    if status in (Status.COMPLETE, Status.HEALTHY):
        return []
    undecided = (h for h in draft.hypotheses if h.confidence <= SHOWN_FROM and not is_refuted(h))
    for hypothesis in [h for h in undecided if h.cause not in draft.folded][:4]:
        if run.recording is not None and "traindx run" in hypothesis.confirm_by:
            continue  # it was, and that is what this is
        questions.setdefault(f"To decide on {hypothesis.cause}: {hypothesis.confirm_by}")
    if not run.has("loss") and not run.sources and not run.failures:
        questions.setdefault("Is there a console log, a metrics file, or the training script?")
    return list(questions)
