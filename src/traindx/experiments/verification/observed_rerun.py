"""What a rerun shows: its recording read and diagnosed by the detectors, as any run's is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from traindx.diagnosis.engine import diagnose
from traindx.errors import TraindxError
from traindx.experiments.changes import Rerun
from traindx.experiments.verification.learning_curve import Course, course_of
from traindx.model.findings import Diagnosis, Finding, Strength, Trial
from traindx.model.recording import Place, Process
from traindx.model.run import Failure, Run
from traindx.readers.opening import open_paths
from traindx.registry import detectors

MOST_POINTS = 200  # of a curve in a trial
SAME_PLACE = 3  # lines that a patch may have moved a statement by


@dataclass(frozen=True, slots=True)
class RerunCrash:
    """An exception that ended a run: its type, its message and the user's line."""

    type: str
    message: str = ""
    file: str = ""
    function: str = ""
    line: int = 0
    code: str = ""

    @property
    def words(self) -> str:
        where = f" at {self.file}:{self.line}" if self.file else ""
        return f"{self.type}{where}"


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """A rerun with what the detectors find in it."""

    rerun: Rerun
    run: Run
    diagnosis: Diagnosis
    course: Course
    crash: RerunCrash | None = None

    @property
    def steps(self) -> int:
        """Return how many times it went through its training loop."""
        return steps_in(self.run)

    @property
    def is_broken(self) -> bool:
        return self.course.is_broken

    def trial(self, symptoms: Sequence[str], *, is_changed: bool) -> Trial:
        """Return what a report shows of it."""
        stride = max(1, -(-len(self.course.losses) // MOST_POINTS))
        return Trial(
            is_changed=is_changed,
            seed=self.rerun.seed,
            steps=tuple(float(s) for s in self.course.steps[::stride]),
            losses=tuple(float(v) for v in self.course.losses[::stride]),
            symptoms=tuple(symptoms),
            ending=self.ending,
        )

    @property
    def ending(self) -> str:
        if self.rerun.stopped == "steps":
            return f"stopped after {self.steps} steps"
        if self.rerun.stopped == "time":
            return f"stopped after {self.rerun.duration_s:.0f} s"
        if self.crash is not None:
            return f"{self.crash.type}: {self.crash.message}"[:200].rstrip(": ")
        if self.rerun.exit_code:
            return f"ended with exit code {self.rerun.exit_code}"
        return "ended" if self.rerun.exit_code == 0 else "ended by a signal"


def observe(rerun: Rerun) -> Observation:
    """Read the recording of a rerun and diagnose it."""
    try:
        run = open_paths([os.fspath(rerun.folder)])
    except TraindxError:  # it ended before there was anything to record
        run = Run()
    return observed(rerun, run)


def observed(rerun: Rerun, run: Run) -> Observation:
    """Diagnose a run that a rerun left."""
    crash = None if rerun.stopped else crash_of(run)  # how it took being stopped tells nothing
    return Observation(rerun, run, diagnose(run), course_of(run), crash)


def steps_in(run: Run) -> int:
    """Return how many times a run went through its training loop, stepped or not."""
    process = main_process(run)
    counts = process.counts if process is not None else None
    recorded = max(counts.steps, counts.backwards) if counts is not None else 0
    loss = run.main_loss()
    points = len(loss) if loss is not None and loss.axis == "step" else 0
    return max(recorded, points)


def main_process(run: Run) -> Process | None:
    """Return the recorded process that stands for a run."""
    return run.recording.main if run.recording is not None else None


def crash_of(run: Run) -> RerunCrash | None:
    """Return the exception that ended a run, from its recording or else from what it printed."""
    process = main_process(run)
    ending = run.recording.ending if run.recording is not None else None
    if ending is not None and ending.exit_code == 0:
        return None
    for caught in reversed(process.caught if process is not None else ()):
        if not caught.thread or caught.thread == "MainThread":
            return _crash(caught.type, caught.message, [_row(p) for p in caught.places])
    if run.failures:
        return _of_failure(run.failures[-1])
    return None


def _of_failure(failure: Failure) -> RerunCrash:
    rows = [(f.file, f.line, f.function, f.code) for f in failure.frames]
    return _crash(failure.type, failure.message, rows)


def _row(place: Place) -> tuple[str, int, str, str]:
    return place.file, place.line, place.function, place.code


def _crash(kind: str, message: str, rows: Sequence[tuple[str, int, str, str]]) -> RerunCrash:
    own = [r for r in rows if "site-packages" not in r[0] and not r[0].startswith("<")]
    file, line, function, code = (own or list(rows) or [("", 0, "", "")])[-1]
    name = kind.rsplit(".", 1)[-1]
    return RerunCrash(name, message, Path(file).name, function, line, code.strip())


def is_same_crash(first: RerunCrash, second: RerunCrash, source: Run) -> bool:
    """Tell whether the second crash, in a run with that source, is the first one again.

    Where the line is still there and another one fails, the program got past it.
    """
    if (first.type, first.file, first.function) != (second.type, second.file, second.function):
        return False
    if first.code == second.code:
        return True
    lines = {line.strip() for s in source.sources for line in s.text.splitlines()}
    return first.code not in lines and abs(first.line - second.line) <= SAME_PLACE


def is_runtime(finding: Finding, run: Run) -> bool:
    """Tell whether a finding rests on what the run did: its source stays as it was in a rerun."""
    sources = {s.path for s in run.sources}
    return any(e.artifact not in sources for e in finding.evidence)


def is_about_crash(finding: Finding, run: Run) -> bool:
    """Tell whether a finding explains the exception that ended a run."""
    process = main_process(run)
    lines = {f"line {c.line}" for c in process.caught} if process is not None else set()
    path = process.path if process is not None else ""
    if any(e.artifact == path and e.locator in lines for e in finding.evidence):
        return True
    needs = {d.name: d.needs for d in detectors().items}
    return "failure" in needs.get(finding.detector, ())


def is_suffered(finding: Finding, run: Run) -> bool:
    """Tell whether a finding is a symptom that a rerun could show again."""
    is_plain = finding.strength is not Strength.WEAK
    return finding.is_symptom and is_plain and is_runtime(finding, run)
