"""Asking the detectors: which of them can look, what they say, and what could not be checked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from traindx.analysis.time_limit import OutOfTime, limited
from traindx.model.findings import Failed, Finding, Skipped
from traindx.model.needs import need_of, without
from traindx.model.run import Run
from traindx.registry import Detector, declared_detectors

_PRINTED = frozenset({"console", "torchrun", "notebook", "wandb"})  # readers of what a run printed
NOT_REACHED = "not reached within --max-time; allow more time"
NOT_FINISHED = "not finished within --max-time; allow more time"
_PRINTED_PARTS = frozenset({"failure", "events"})  # what is found there, if it happened


@dataclass(slots=True)
class Gathered:
    """What the detectors said, and which of them could not."""

    findings: list[Finding] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)


def gather(run: Run, *, deadline: float | None = None) -> Gathered:
    """Run every detector whose needs the run meets."""
    with limited(deadline):
        return _gather(run, deadline)


def _gather(run: Run, deadline: float | None) -> Gathered:
    found = declared_detectors()
    read = _PRINTED_PARTS if _has_output(run) else frozenset()
    gathered = Gathered(skipped=list(_unread(run)), failed=list(found.failed))
    for detector in found.items:
        lacking = [need for need in detector.needs if not run.has(need)]
        missing = tuple(filter(None, (without(need, read) for need in lacking)))
        if lacking and not missing:
            gathered.checked.append(detector.name)  # the output was read, and holds nothing of it
        elif missing:
            gathered.skipped.append(Skipped(detector.name, missing, _how(missing, run)))
        elif deadline is not None and time.monotonic() > deadline:
            gathered.skipped.append(Skipped(detector.name, (), NOT_REACHED))
        else:
            _run_detector(detector.load(), run, gathered)
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
    findings: list[Finding] = []
    try:
        findings.extend(_in_cells(f.named(detector.name), run) for f in detector.check(run))
        gathered.checked.append(detector.name)
    except OutOfTime:
        gathered.skipped.append(Skipped(detector.name, (), NOT_FINISHED))
    except Exception as error:  # a detector that crashes must never hide the others
        gathered.failed.append(Failed(detector.name, f"{type(error).__name__}: {error}"))
        return
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
    has_recording = run.recording is not None
    return "; ".join(need_of(need).way(has_recording=has_recording) for need in missing)


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
