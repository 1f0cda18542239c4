"""From findings to belief: select, run, weigh, rank, and ask. The only home of confidence.

Each symptom is a differential of its own: the causes that its findings suggest compete with each
other and with "something else". A cause that is shown directly does not compete; it takes the
symptom from its rivals. A cause that follows from a listed one is folded into it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp

from traindx.causes import Cause, all_causes, consequences_of
from traindx.evidence import (
    LISTED_FROM,
    SHOWN_FROM,
    Diagnosis,
    Failed,
    Finding,
    Hypothesis,
    Skipped,
    Status,
    Strength,
)
from traindx.model import Run
from traindx.names import HIGHER_IS_BETTER, LOWER_IS_BETTER, kind_of
from traindx.registry import Detector, detectors

# Log-odds. One moderate finding leaves a cause open among its rivals, one strong or two moderate
# findings make it fit, and only direct evidence lifts it over 0.9.
PRIOR = -2.0
WEIGHT = {Strength.WEAK: 1.0, Strength.MODERATE: 2.2, Strength.STRONG: 3.5}
DIRECT = 6.0
SOMETHING_ELSE = 1.0  # the odds that a symptom has a cause nobody suggested
HIGHEST = 0.99  # short of an experiment
HIGHEST_FITTING = 0.90
HIGHEST_WITHOUT_SYMPTOM = 0.65  # a risk that hurts nobody yet is a remark

_PRINTED = frozenset({"console", "torchrun", "notebook", "wandb"})  # readers of what a run printed

HOW_TO_GET = {
    "loss": "log the training loss, or use traindx run",
    "loss/train": "log the training loss, or use traindx run",
    "loss/val*": "evaluate on held-out data every epoch and log its loss",
    "grad_norm": "log the gradient norm, or use traindx run",
    "layers/*/grad_norm": "log gradient norms per layer, or use traindx run",
    "lr": "log the learning rate, or pass the config",
    "config": "pass the configuration (YAML, JSON, TOML or the printed arguments)",
    "source": "pass the training script",
    "failure": "pass the traceback, where the run crashed",
    "architecture": "pass a checkpoint or a model summary",
    "checkpoint": "pass a checkpoint",
    "checkpoints": "pass two checkpoints of the run",
    "loss/train/*": "log every term of the loss",
    "accuracy/train*": "log the training accuracy",
    "accuracy/val*": "log the validation accuracy",
    "loss_scale|events": "pass the console log, or log the gradient scale",
    "kl/*|loss/*/kl*": "log the KL term",
    "accuracy/*": "log the accuracy",
    "recall/*|f1/*|precision/*": "log recall or F1 beside the accuracy",
    "lr|config": "log the learning rate, or pass the config",
    "samples": "pass a log or file with outputs of the model",
    "confusions": "pass a log with a confusion matrix",
    "confusions|recall/*/class*|accuracy/*": "log the accuracy, or print a confusion matrix",
    "config|confusions": "pass a log with class counts or a confusion matrix",
    "events": "pass the console log",
    "weight_norm|layers/*/weight_norm": "log the norm of the weights, or use traindx run",
    "config|clip_max": "pass the configuration, or use traindx run",
    "recording": "use traindx run",
}


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


@dataclass(slots=True)
class Gathered:
    """What the detectors said, and which of them could not."""

    findings: list[Finding] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)


def gather(run: Run, *, deadline: float | None = None) -> Gathered:
    """Run every detector whose needs the run meets."""
    found = detectors()
    gathered = Gathered(skipped=list(_unread(run)), failed=list(found.failed))
    for detector in found.items:
        missing = tuple(need for need in detector.needs if not run.has(need))
        if missing == ("failure",) and _has_output(run):
            gathered.checked.append(detector.name)  # the run's output was read and holds no error
        elif missing:
            gathered.skipped.append(Skipped(detector.name, missing, _how(missing, run)))
        elif deadline is not None and time.monotonic() > deadline:
            how = "not reached within --max-time; allow more time"
            gathered.skipped.append(Skipped(detector.name, (), how))
        else:
            _run_detector(detector, run, gathered)
    return gathered


def _has_output(run: Run) -> bool:
    return any(artifact.reader in _PRINTED for artifact in run.artifacts)


def _unread(run: Run) -> Iterator[Skipped]:
    """What was asked for and could not be read is a check that was not made."""
    for artifact in run.artifacts:
        if not artifact.reader:
            how = f"{artifact.path}: {'; '.join(artifact.warnings) or 'not read'}"
            yield Skipped("", (artifact.path,), how)


def _run_detector(detector: Detector, run: Run, gathered: Gathered) -> None:
    try:
        findings = [_in_cells(f.named(detector.name), run) for f in detector.check(run)]
    except Exception as error:  # a detector that crashes must never hide the others
        gathered.failed.append(Failed(detector.name, f"{type(error).__name__}: {error}"))
        return
    gathered.checked.append(detector.name)
    once = {(f.claim, f.location, f.evidence[:1] and f.evidence[0].locator): f for f in findings}
    gathered.findings.extend(once.values())  # two loops may lead to one line


def _in_cells(finding: Finding, run: Run) -> Finding:
    """Point into the cells of a notebook, which is how its author counts."""
    notebooks = {s.path: s for s in run.sources if s.path.endswith(".ipynb")}
    if not any(e.artifact in notebooks for e in finding.evidence):
        return finding
    moved = []
    for evidence in finding.evidence:
        line = evidence.locator.removeprefix("line ")
        if evidence.artifact in notebooks and line.isdigit():
            where = notebooks[evidence.artifact].where(int(line))
            moved.append(replace(evidence, locator=where))
        else:
            moved.append(evidence)
    return replace(finding, evidence=tuple(moved))


def _how(missing: Sequence[str], run: Run) -> str:
    ways = "; ".join(
        HOW_TO_GET.get(need, f"provide {need.replace('|', ' or ')}") for need in missing
    )
    return ways.replace(", or use traindx run", "") if run.recording is not None else ways


def without_echoes(findings: Sequence[Finding]) -> list[Finding]:
    """Leave out a symptom that names no cause where another finding explains the same place."""
    explained = {
        (e.artifact, e.locator)
        for f in findings
        if f.is_symptom and (f.suggests or f.shows)
        for e in f.evidence
    }
    return [
        f
        for f in findings
        if f.suggests
        or f.shows
        or not f.is_symptom
        or not all((e.artifact, e.locator) in explained for e in f.evidence)
    ]


def weigh(findings: Sequence[Finding], run: Run) -> list[Hypothesis]:
    """Return every suggested cause with its confidence, best first."""
    causes = all_causes()
    suggested = {c for f in findings for c in (*f.suggests, *([f.shows] if f.shows else []))}
    odds = {c: exp(_log_odds(c, findings)) for c in suggested}
    shown = {f.shows for f in findings if f.shows}
    hypotheses = []
    for name in suggested:
        confidence = _confidence(name, findings, odds, is_shown=name in shown)
        hypotheses.append(_hypothesis(causes[name], confidence, findings, run))
    return sorted(hypotheses, key=_rank)


def _rank(hypothesis: Hypothesis) -> tuple[float, int, str]:
    return -round(hypothesis.confidence, 3), -hypothesis.severity.rank, hypothesis.cause


def _log_odds(cause: str, findings: Iterable[Finding]) -> float:
    total = PRIOR
    for finding in findings:
        if finding.shows == cause:
            total += DIRECT
        elif cause in finding.suggests:
            total += WEIGHT[finding.suggests[cause]]
        if cause in finding.against:
            total -= WEIGHT[finding.against[cause]]
    return total


def _confidence(
    cause: str, findings: Iterable[Finding], odds: Mapping[str, float], *, is_shown: bool
) -> float:
    own = odds[cause]
    alone = own / (own + SOMETHING_ELSE)
    if is_shown:
        return min(alone, HIGHEST)
    shares = [
        own / (SOMETHING_ELSE + sum(odds[c] for c in finding.suggests))
        for finding in findings
        if finding.is_symptom and cause in finding.suggests
    ]
    if not shares:
        return min(alone, HIGHEST_WITHOUT_SYMPTOM)
    return min(max(shares), HIGHEST_FITTING)


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
    if effect.confidence > SHOWN_FROM >= root.confidence:
        return False  # what is shown outranks what merely fits
    if effect.onset is None or root.onset is None:
        return True
    return effect.onset >= root.onset


def _with_consequences(hypothesis: Hypothesis, folded: Mapping[str, str]) -> Hypothesis:
    consequences = (c for c, root in folded.items() if root == hypothesis.cause)
    return replace(hypothesis, consequences=tuple(consequences))


def _status(draft: Diagnosis, run: Run) -> Status:
    symptoms = [f for f in draft.findings if f.is_symptom and f.strength is not Strength.WEAK]
    roots = draft.root_causes
    if not roots:
        if symptoms or not _has_enough(run):
            return Status.INSUFFICIENT
        return Status.HEALTHY
    explained = {id(f) for h in draft.hypotheses if h.confidence >= LISTED_FROM for f in h.findings}
    all_explained = all(id(f) in explained for f in symptoms)
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
        leads = [h.cause for h in draft.hypotheses if h.cause in symptoms[-1].suggests][:3]
        return f"{symptoms[-1].claim.rstrip('.')}{_undecided(leads)}."
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


def _cause_summary(roots: Sequence[Hypothesis]) -> str:
    first = roots[0]
    verb = "" if first.confidence > SHOWN_FROM else " (fits the evidence, not confirmed)"
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
    undecided = (h for h in draft.hypotheses if h.confidence <= SHOWN_FROM)
    for hypothesis in [h for h in undecided if h.cause not in draft.folded][:4]:
        if run.recording is not None and "traindx run" in hypothesis.confirm_by:
            continue  # it was, and that is what this is
        questions.setdefault(f"To decide on {hypothesis.cause}: {hypothesis.confirm_by}")
    if not run.has("loss") and not run.sources and not run.failures:
        questions.setdefault("Is there a console log, a metrics file, or the training script?")
    return list(questions)
