"""Asking the detectors: which of them can look, what they say, and what could not be checked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from traindx.evidence import Failed, Finding, Skipped
from traindx.model import Run
from traindx.registry import Detector, detectors

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
