"""The checks before a long job: three short reruns of the command on a copy, and a checklist."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from traindx.analysis.recordings.observations import processes_of
from traindx.capture.launcher.memory_pressure import available_bytes
from traindx.diagnosis import engine
from traindx.errors import TraindxError
from traindx.experiments.changes import Change, Intervention, Limits, Rerun
from traindx.experiments.preflight import checks
from traindx.experiments.preflight.forecast import DURATION, duration, memory, plan_of
from traindx.experiments.preflight.overlap import overlap, read_examples
from traindx.experiments.sandbox.workshop import Workshop
from traindx.model.findings import Diagnosis, Evidence, Hypothesis, Severity
from traindx.model.preflight import Check, Checklist, Outcome
from traindx.model.run import Run
from traindx.readers.opening import open_paths

MAX_TIME_S = 120.0
SEED = 1
LOOK_STEPS = 200  # enough for memory to show its pace, and for the detectors
BATCH_STEPS = 200
TWICE_STEPS = 12
LOOK_SHARE = 0.5  # of the time; the other two reruns take the rest
BATCH_SHARE = 0.7  # of what is left then
BUSY = 1.2  # jobs for each processor: times measured then are not the command's own
LEAST_S = 2.0  # beyond the set-up, for a rerun to be worth it

WITH_MARKS = Change("as it is", (Intervention("fingerprints"),))
WITH_ONE_BATCH = Change("the same batch at every step", (Intervention("one-batch"),))

RUNS = ("runs", "the command runs")
DIAGNOSIS = ("diagnosis", "nothing else is wrong")
CAUSES: dict[str, tuple[str, ...]] = {
    "first-loss": (
        "bad-initialisation", "softmax-before-cross-entropy", "loss-expects-probabilities",
        "wrong-loss-for-task", "target-shape-broadcast", "unnormalised-targets",
    ),
    "parameters": (
        "missing-optimizer-step", "missing-backward", "gradients-cleared-before-step",
        "parameters-not-in-optimizer", "frozen-parameters", "detached-loss", "lr-zero",
        "unused-parameters", "no-grad-training", "unregistered-submodules", "vanishing-gradients",
        "dead-relu",
    ),
    "inputs": ("unnormalised-inputs", "nan-in-data", "degenerate-batch"),
    "overlap": ("evaluating-on-training-data", "data-leakage"),
    "memory": (
        "host-memory-growth", "graph-kept-alive", "graph-retained-across-steps",
        "activation-memory", "evaluation-with-grad", "shared-memory-exhausted",
    ),
    "duration": ("data-loading-bound", "host-bound", "synchronisation-in-loop", "recompilation"),
}  # fmt: skip

Rerunning = Callable[[Change, int, Limits], Rerun]


@dataclass(frozen=True, slots=True)
class RehearsedRun:
    """A rerun and what was read from its recording."""

    rerun: Rerun
    run: Run

    @property
    def steps(self) -> int:
        counted = [p.counts.steps for p in processes_of(self.run) if p.counts is not None]
        return max(counted, default=0)

    @property
    def backwards(self) -> int:
        counted = [p.counts.backwards for p in processes_of(self.run) if p.counts is not None]
        return max(counted, default=0)

    @property
    def is_whole(self) -> bool:
        return not self.rerun.stopped and self.rerun.exit_code == 0


def preflight_command(
    command: Sequence[str],
    *,
    max_time_s: float | None,
    keep: str | os.PathLike[str] | None,
    tell: Callable[[str], None],
    warn: Callable[[str], None],
) -> Checklist:
    """Rehearse a command in the current folder; `warn` hears of side effects not ruled out."""
    with Workshop(command, Path.cwd(), os.environ, tell) as workshop:
        for warning in workshop.warnings:
            warn(f"side effect not ruled out: {warning}")
        checklist = preflight(
            workshop.rerun,
            command,
            max_time_s=MAX_TIME_S if max_time_s is None else max_time_s,
            tell=tell,
            keep=None if keep is None else Path(keep),
        )
        return replace(checklist, warnings=workshop.warnings)


def preflight(
    rerun: Rerunning,
    command: Sequence[str],
    *,
    max_time_s: float = MAX_TIME_S,
    tell: Callable[[str], None] = lambda label: None,
    keep: Path | None = None,
) -> Checklist:
    """Rerun a command a few times, briefly, and judge what experts look at before a long job.

    An interrupt ends it with what is known. `keep` is a folder for the first recording, to which
    the evidence points.
    """
    return _Preflight(rerun, command, max_time_s, tell, keep).go()


class _Preflight:
    def __init__(
        self,
        rerun: Rerunning,
        command: Sequence[str],
        max_time_s: float,
        tell: Callable[[str], None],
        keep: Path | None,
    ) -> None:
        self._rerun, self._command, self._tell, self._keep = rerun, tuple(command), tell, keep
        self._started = time.monotonic()
        self._max_time_s = max_time_s
        self._first: RehearsedRun | None = None
        self._diagnosis: Diagnosis | None = None
        self._one_batch = checks.unjudged(*checks.ONE_BATCH, "it was interrupted before that")
        self._twice = checks.unjudged(*checks.SAME_TWICE, "it was interrupted before that")
        self._redirected: dict[str, None] = {}
        self._load = 0.0

    def go(self) -> Checklist:
        is_interrupted = False
        try:
            self._look()
            self._one_batch = self._try_one_batch()
            self._twice = self._try_twice()
        except KeyboardInterrupt:
            is_interrupted = True
        return Checklist(
            command=self._command,
            checks=tuple(self._checks()),
            diagnosis=self._diagnosis,
            redirected=tuple(self._redirected),
            steps=self._first.steps if self._first is not None else 0,
            duration_s=time.monotonic() - self._started,
            is_interrupted=is_interrupted,
        )

    def _left_s(self) -> float:
        return self._max_time_s - (time.monotonic() - self._started)

    def _again(self, what: str, change: Change, limits: Limits) -> RehearsedRun:
        self._tell(what)
        done = self._rerun(change, SEED, limits)
        self._redirected.update(dict.fromkeys(done.redirected))
        return RehearsedRun(done, _opened(done.folder))

    def _kept(self, look: RehearsedRun) -> RehearsedRun:
        """Keep a recording that evidence can lead to, and return it as read from there."""
        if self._keep is None:
            return look
        shutil.rmtree(self._keep, ignore_errors=True)
        shutil.copytree(look.rerun.folder, self._keep)
        return RehearsedRun(look.rerun, _opened(self._keep))

    def _look(self) -> None:
        limits = Limits(LOOK_SHARE * self._max_time_s, LOOK_STEPS)
        self._first = self._kept(self._again("1 of 3: the first steps", WITH_MARKS, limits))
        self._load = load_of_machine()
        self._diagnosis = engine.diagnose(
            self._first.run, deadline=time.monotonic() + max(5.0, 0.2 * self._left_s())
        )

    def _why_not(self) -> str:
        """Return why no other rerun is made; nothing if one can be."""
        look = self._first
        if look is None or not look.steps:
            return "no optimizer step was seen"
        set_up = look.rerun.first_step_s or 0.0
        if self._left_s() < 1.2 * set_up + LEAST_S:
            return f"no time was left for it: set-up takes {set_up:.0f} s (--max-time)"
        return ""

    def _try_one_batch(self) -> Check:
        look, why = self._first, self._why_not()
        if look is None or why:
            return checks.unjudged(*checks.ONE_BATCH, why)
        if not any(p.loaders for p in processes_of(look.run)):
            return checks.unjudged(*checks.ONE_BATCH, "the data does not come through a DataLoader")
        if look.run.objective() is None:
            why = "there is no single loss that training should lower"
            return checks.unjudged(*checks.ONE_BATCH, why)
        limits = Limits(BATCH_SHARE * self._left_s(), BATCH_STEPS)
        again = self._again("2 of 3: one batch, again and again", WITH_ONE_BATCH, limits)
        if not again.steps:
            why = f"no step was taken within {again.rerun.duration_s:.0f} s (--max-time)"
            return checks.unjudged(*checks.ONE_BATCH, why)
        return checks.one_batch(again.run, again.rerun.applied.get("one-batch", 0))

    def _try_twice(self) -> Check:
        look, why = self._first, self._why_not()
        if look is None or why:
            return checks.unjudged(*checks.SAME_TWICE, why)
        limits = Limits(self._left_s(), min(TWICE_STEPS, look.steps))
        again = self._again("3 of 3: the first steps once more", WITH_MARKS, limits)
        return checks.determinism(look.run, again.run)

    def _checks(self) -> list[Check]:
        look, found = self._first, self._diagnosis
        if look is None:
            return [checks.unjudged(*RUNS, "it was interrupted before a step was taken")]
        run = look.run
        plan = plan_of(run, is_complete=look.is_whole)
        made = [
            checks.inputs(run, _raw_inputs(found)),  # its faults show in the next two
            checks.first_loss(run),
            self._one_batch,
            checks.parameters(run),
            overlap(read_examples(look.rerun.folder)),
            self._twice,
            memory(run, plan, available_bytes()),
            duration(run, plan, look.rerun.first_step_s, is_complete=look.is_whole),
        ]
        listed = listed_causes(found, is_cut=bool(look.rerun.stopped))
        made = [with_causes(check, listed) for check in made]
        made = [unless_busy(check, self._load) for check in made]
        told = {cause for check in made for cause in check.causes}
        rest = [h for h in listed if h.cause not in told]
        every = [runs(look, rest), *made, diagnosed(look, found, rest)]
        return every if self._keep is not None else [_without_folders(c) for c in every]


def _opened(folder: Path) -> Run:
    try:
        return open_paths([str(folder)])
    except TraindxError:  # nothing was recorded and nothing printed
        return Run()


def _without_folders(check: Check) -> Check:
    """Return a check whose evidence names files, for the folder is gone once it is read."""
    cited = (replace(e, artifact=Path(e.artifact).name) for e in check.evidence)
    return replace(check, evidence=tuple(cited))


def _raw_inputs(diagnosis: Diagnosis | None) -> tuple[Evidence, ...]:
    found = diagnosis.findings if diagnosis is not None else ()
    return tuple(e for f in found if f.detector == "unscaled-inputs" for e in f.evidence)


def listed_causes(diagnosis: Diagnosis | None, *, is_cut: bool) -> list[Hypothesis]:
    """Return the root causes; that a rerun was ended by us is none."""
    causes = diagnosis.root_causes if diagnosis is not None else ()
    return [
        h
        for h in causes
        if not is_cut or any(f.detector != "command-ended-by-signal" for f in h.findings)
    ]


def with_causes(check: Check, listed: Sequence[Hypothesis]) -> Check:
    """Return a check as failed where the diagnosis lists a cause that belongs to it."""
    own = [h for h in listed if h.cause in CAUSES.get(check.name, ())]
    if not own:
        return check
    return _failed_by(check, own)


def _failed_by(check: Check, own: Sequence[Hypothesis]) -> Check:
    first = own[0]
    return replace(
        check,
        outcome=Outcome.FAILED,
        says=first.issue.rstrip("."),
        evidence=(*first.evidence[:3], *check.evidence),
        severity=max((h.severity for h in own), key=lambda s: s.rank),
        fix=first.remedies[0].change if first.remedies else check.fix,
        causes=tuple(h.cause for h in own),
    )


def unless_busy(check: Check, load: float) -> Check:
    """Return a check of times as not judged where others use the machine as well."""
    if check.name != DURATION[0] or check.outcome is not Outcome.FAILED or load <= BUSY:
        return check
    says = f"{check.says}; but the machine is busy, with {load:.1f} jobs for each processor"
    return replace(check, outcome=Outcome.OPEN, says=says, severity=None)


def load_of_machine() -> float:
    """Return how many jobs wait for each processor; 0 where that is not known."""
    try:
        return os.getloadavg()[0] / (os.cpu_count() or 1)
    except (AttributeError, OSError):
        return 0.0


def runs(look: RehearsedRun, rest: Sequence[Hypothesis] = ()) -> Check:
    """Say whether the command came to train at all."""
    done = look.rerun
    is_broken = done.exit_code not in (0, None) or (done.exit_code is None and not done.stopped)
    if is_broken and not done.stopped:
        failure = look.run.failures[-1] if look.run.failures else None
        how = f"exit code {done.exit_code}" if done.exit_code is not None else "a signal"
        why = f"{failure.type}: {failure.message}"[:200] if failure is not None else how
        says = f"it ended after {look.steps} steps with {why}"
        check = Check(*RUNS, Outcome.FAILED, says, (), Severity.CRITICAL, "make it run first")
        return replace(_failed_by(check, rest), says=says) if rest else check
    if not look.steps and not look.backwards:
        took = f"within {done.duration_s:.0f} s"
        why = f"no optimizer step was seen {took}; give it more --max-time" if done.stopped else ""
        return checks.unjudged(*RUNS, why or "it ended without any optimizer step that was seen")
    if not look.steps:
        return checks.passed(*RUNS, f"{look.backwards} backward passes, and no optimizer step")
    began = f", the first after {done.first_step_s:.1f} s" if done.first_step_s else ""
    end = "to its end" if look.is_whole else "then it was stopped"
    return checks.passed(*RUNS, f"{look.steps} steps{began}, {end}")


def diagnosed(look: RehearsedRun, diagnosis: Diagnosis | None, rest: Sequence[Hypothesis]) -> Check:
    """Say what the detectors found that no other check stands for."""
    if diagnosis is None:
        return checks.unjudged(*DIAGNOSIS, "it was interrupted before that")
    if runs(look).outcome is Outcome.FAILED and rest:
        return checks.unjudged(*DIAGNOSIS, "the command has to run first")
    count = len(diagnosis.checked)
    if rest:
        check = Check(*DIAGNOSIS, Outcome.FAILED, "")
        return _failed_by(check, rest)
    if not look.steps and not look.backwards:
        return checks.unjudged(*DIAGNOSIS, f"{count} detectors had no step to look at")
    return checks.passed(*DIAGNOSIS, f"{count} detectors list no other cause")
