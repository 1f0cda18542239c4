"""From findings to a diagnosis, and from experiments to one that is tested.

Each symptom is a differential of its own: the causes that its findings suggest compete with each
other and with "something else". A cause that is shown directly does not compete; it takes the
symptom from its rivals. A cause that follows from a listed one is folded into it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import exp

from traindx.causes import all_causes
from traindx.diagnosis.hypotheses import (
    asides_of,
    fold,
    hypothesis_of,
    rank_of,
    weigh,
    with_consequences,
)
from traindx.diagnosis.questions import questions_of
from traindx.diagnosis.running import gather, without_echoes
from traindx.diagnosis.shown_in_order import shown_in_order
from traindx.diagnosis.summary import status_of, summary_of
from traindx.diagnosis.weights import confidence_of, log_odds
from traindx.model.findings import (
    EXPERIMENT,
    Diagnosis,
    Experiment,
    Finding,
    Hypothesis,
    Remedy,
    Status,
    Verdict,
)
from traindx.model.probes import PROBE, Probe, Probing
from traindx.model.run import Run
from traindx.model.trials import finding_of, removed_by

# Whatever was argued, an experiment decides. It is not certain either: a few seeds over a few steps
# stand for the whole run, and what a change took away may come back later.
HIGHEST_TESTED = 0.995
HIGHEST_REFUTED = 0.03
STANDING = 0.5  # what the source or a step shows directly is there, whatever an experiment missed


def diagnose(run: Run, *, deadline: float | None = None) -> Diagnosis:
    """Diagnose a run with every detector that has what it needs, until the deadline."""
    started = time.monotonic()
    gathered = gather(run, deadline=deadline)
    gathered.findings = without_echoes(gathered.findings)
    hypotheses = weigh(gathered.findings, run)
    folded = fold(hypotheses)
    hypotheses = [with_consequences(h, folded) for h in hypotheses]
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
        asides=asides_of(hypotheses, gathered.findings, run),
        judged=shown_in_order(run),
    )
    status = status_of(draft, run)
    return replace(
        draft,
        status=status,
        summary=summary_of(draft, status, run),
        questions=tuple(questions_of(draft, status, run)),
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
    hypotheses.sort(key=rank_of)
    folded = fold(hypotheses)
    hypotheses = [with_consequences(h, folded) for h in hypotheses]
    folded = {**trial.closed(hypotheses), **folded}
    draft = replace(
        diagnosis,
        hypotheses=tuple(hypotheses),
        findings=findings,
        folded=folded,
        asides=asides_of(hypotheses, findings, run),
        experiments=told,
    )
    status = status_of(draft, run, frozenset(map(id, trial.taken)))
    return replace(
        draft,
        status=status,
        summary=summary_of(draft, status, run),
        questions=tuple(questions_of(draft, status, run)),
    )


def with_probes(
    diagnosis: Diagnosis,
    probing: Probing,
    findings: Sequence[Finding],
    run: Run,
    says: str = "",
) -> Diagnosis:
    """Take what probes found into a diagnosis: their findings are weighed with all others.

    `says` is what they came to, and stands first.
    """
    every = (*(f for f in diagnosis.findings if f.detector != PROBE), *findings)
    advised = {p.cause: p for p in reversed(probing.probes) if p.helps and p.advice}
    hypotheses = [_advised(h, advised.get(h.cause)) for h in weigh(every, run)]
    folded = fold(hypotheses)
    hypotheses = [with_consequences(h, folded) for h in hypotheses]
    draft = replace(
        diagnosis,
        hypotheses=tuple(hypotheses),
        findings=every,
        folded=folded,
        asides=asides_of(hypotheses, list(every), run),
        probing=probing,
    )
    status = status_of(draft, run)
    told = summary_of(draft, status, run)
    return replace(
        draft,
        status=status,
        summary=f"{says} {told}".strip(),
        questions=tuple(questions_of(draft, status, run)),
    )


def _advised(hypothesis: Hypothesis, probe: Probe | None) -> Hypothesis:
    """Advise the value that helped."""
    if probe is None or not hypothesis.remedies:
        return hypothesis
    first = replace(hypothesis.remedies[0], change=probe.advice)
    return replace(hypothesis, remedies=(first, *hypothesis.remedies[1:]))


class _Trials:
    """Which causes experiments decided on, and the symptoms that this settles."""

    def __init__(self, experiments: Sequence[Experiment], findings: Sequence[Finding]) -> None:
        self.findings = findings
        by = {v: {e.cause for e in experiments if e.verdict is v} for v in Verdict}
        self.confirmed = by[Verdict.CONFIRMED]
        # where one change does not help and another one does, the cause is the cause
        self.refuted = by[Verdict.REFUTED] - self.confirmed
        self.decided = self.confirmed | self.refuted
        self.remedies = {
            e.cause: e.remedy for e in experiments if e.verdict is Verdict.CONFIRMED and e.remedy
        }
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

    def closed(self, hypotheses: Sequence[Hypothesis]) -> dict[str, str]:
        """Return the rivals whose symptoms a confirmed cause took, each with that cause."""
        roots = [h for h in hypotheses if h.confirmed]
        taken = set(map(id, self.taken))
        closed = {}
        for rival in hypotheses:
            own = {id(f) for f in rival.findings if f.is_symptom}
            is_decided = rival.confirmed or rival.cause in self.refuted
            if own and own <= taken and not is_decided and not self._stands(rival.cause):
                root = next((r for r in roots if own & set(map(id, r.findings))), roots[0])
                closed[rival.cause] = root.cause
        return closed

    def _stands(self, name: str) -> bool:
        return any(f.shows == name for f in self.findings)

    def is_overruled(self, experiment: Experiment) -> bool:
        return experiment.verdict is Verdict.REFUTED and experiment.cause in self.confirmed

    def judged(
        self, known: Hypothesis | None, name: str, findings: Sequence[Finding], run: Run
    ) -> Hypothesis:
        """Return a cause as it stands after the experiments."""
        made = known
        if made is None:
            cause = all_causes().get(name)
            made = hypothesis_of(cause, 0.0, findings, run) if cause else Hypothesis(name, 0.0)
        own = [f for f in findings if f.detector == EXPERIMENT]
        return replace(
            made,
            confidence=self._confidence(name, made.confidence),
            confirmed=name in self.confirmed,
            remedies=self._proven(made),
            findings=(*_argued(made.findings), *(f for f in own if f.shows == name)),
            opposing=(*_argued(made.opposing), *(f for f in own if name in f.against)),
        )

    def _proven(self, hypothesis: Hypothesis) -> tuple[Remedy, ...]:
        """Advise the value that was tested."""
        tested = self.remedies.get(hypothesis.cause)
        if not tested or not hypothesis.remedies:
            return hypothesis.remedies
        return (replace(hypothesis.remedies[0], change=tested), *hypothesis.remedies[1:])

    def _confidence(self, name: str, before: float) -> float:
        if name in self.confirmed:
            return HIGHEST_TESTED
        if not self._is_touched(name):
            return before
        taken = set(map(id, self.taken))
        left = [f for f in self.findings if id(f) not in taken]
        rivals = {c for f in left for c in f.suggests} - self.refuted
        odds = dict.fromkeys(self.refuted, 0.0)
        odds |= {c: exp(log_odds(c, left)) for c in {*rivals, name}}
        is_shown = any(f.shows == name for f in left)
        lowest = STANDING if self._stands(name) else 0.0
        if not is_shown and name not in rivals:
            return max(lowest, HIGHEST_REFUTED)  # nothing is left that it would explain
        belief = confidence_of(name, left, odds, is_shown=is_shown)
        belief = min(belief, HIGHEST_REFUTED) if name in self.refuted else belief
        return max(lowest, belief)

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
