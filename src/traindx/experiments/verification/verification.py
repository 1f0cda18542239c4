"""`verify`: from a diagnosis to one that is tested, within limits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from traindx.capture.launcher.recording_folder import make_folder, shown
from traindx.diagnosis.engine import diagnose, judge
from traindx.errors import CannotRerun
from traindx.experiments.changes import AS_IT_IS, Limits
from traindx.experiments.sandbox.workshop import Workshop
from traindx.experiments.verification.campaign import Campaign, Progress
from traindx.experiments.verification.laboratory import Bench, Laboratory, NoTimeLeft
from traindx.experiments.verification.observed_rerun import main_process
from traindx.experiments.verification.request import VerifyRequest
from traindx.model.findings import EXPERIMENT, Diagnosis, Skipped
from traindx.model.run import Run
from traindx.readers.deadline import Deadline, until
from traindx.readers.opening import open_paths

HANG_AFTER_S = 20.0  # where the original stood still
FIRST_RUN_SHARE = 0.3  # of the time, where nothing is known yet; the rest is for the experiments
NO_TIME = "no time was left to test it"
NOTHING = (
    "nothing to test: the diagnosis has no cause that the run suffers from; --cause NAME tests one "
    "all the same, and `traindx probe -- COMMAND` finds out which change helps"
)
INTERRUPTED = "interrupted before it was tested"

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
class Verification:
    """A run, its diagnosis with the experiments in it, and what was left undone."""

    run: Run
    diagnosis: Diagnosis
    unfinished: tuple[str, ...] = ()
    is_interrupted: bool = False
    recording: str | None = None  # where the first run on a copy was kept, if there was one


def verify_command(
    command: Sequence[str],
    run: Run | None,
    diagnosis: Diagnosis | None,
    request: VerifyRequest,
    *,
    tell: Tell,
    warn: Tell,
    announce: Tell = lambda _: None,
) -> Verification:
    """Test the causes of a run of a command; without a run, the command is first run on a copy.

    `warn` hears of each side effect that cannot be ruled out, before anything runs; `announce` of
    what is going to be tested and how long it takes.
    """
    limit = Deadline.after(request.max_time_s)
    recording = None
    place = (tuple(command), Path.cwd(), os.environ, tell)
    with Workshop(*place, written_since_s=_began_s(run)) as workshop:
        for warning in workshop.warnings:
            warn(f"side effect not ruled out: {warning}")
        if run is None:
            most = FIRST_RUN_SHARE * request.max_time_s
            announce(f"the command runs once on a copy as it is first, for at most {most:.0f} s")
            recording = _first_run(workshop, request)
            with until(limit.ends_s):
                run = open_paths([recording], symptoms=request.symptoms, tell=tell)
        if diagnosis is None:
            diagnosis = diagnose(run, deadline=limit.ends_s)
        left = replace(request, max_time_s=limit.left_s)
        stage = _Stage(tell)
        found = verify(
            run,
            diagnosis,
            workshop,
            left,
            tell=stage.tell,
            progress=stage.follow,
            announce=announce,
        )
    judged = replace(found.diagnosis, duration_s=limit.spent_s)
    return replace(found, diagnosis=judged, recording=recording)


def _began_s(run: Run | None) -> float | None:
    """Return when a recorded run began: what it wrote since is no part of what it found."""
    ending = run.recording.ending if run is not None and run.recording is not None else None
    return ending.started_s if ending is not None else None


def _first_run(workshop: Workshop, request: VerifyRequest) -> str:
    """Run the command once on a copy, as it is, and keep its recording for the evidence in it."""
    limits = Limits(FIRST_RUN_SHARE * request.max_time_s, request.max_steps)
    rerun = workshop.rerun(AS_IT_IS, 0, limits)
    keep = None if request.keep is None else os.fspath(request.keep)
    folder = make_folder(keep, workshop.command)
    reports = shutil.ignore_patterns("interventions-*.json")  # of the guard, none of the run's
    shutil.copytree(rerun.folder, folder, dirs_exist_ok=True, ignore=reports)
    return shown(folder)


class _Stage:
    """Says which experiment of how many something belongs to."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._stage = ""

    def follow(self, done: int, total: int, text: str) -> None:
        self._stage = f"experiment {min(done + 1, total)} of {total}"
        self._tell(f"{self._stage}: {text}")

    def tell(self, label: str) -> None:
        self._tell(f"{self._stage}: {label}" if self._stage else label)


def verify(
    run: Run,
    diagnosis: Diagnosis,
    workshop: Bench,
    request: VerifyRequest,
    *,
    tell: Tell = lambda _: None,
    progress: Progress = lambda done, total, text: None,
    announce: Tell = lambda _: None,
) -> Verification:
    """Test the leading hypotheses of a diagnosis, or the named causes, by rerunning the command.

    Ctrl-C and the end of the time return what is known by then.
    """
    hang_after_s = HANG_AFTER_S if _has_stalled(run) else None
    laboratory = Laboratory(workshop, request.max_time_s, hang_after_s=hang_after_s, tell=tell)
    campaign = Campaign(run, diagnosis, laboratory, request, progress, announce)
    left = ""
    try:
        campaign.run_all()
    except NoTimeLeft:
        left = (
            f"{NO_TIME}; --max-time {laboratory.enough_s:.0f} or fewer steps (--max-steps) would do"
        )
    except KeyboardInterrupt:
        left = INTERRUPTED
    except CannotRerun as error:
        for candidate in campaign.waiting:
            campaign.give_up(candidate, f"the command cannot be rerun: {error}")
    for candidate in campaign.waiting if left else ():
        campaign.give_up(candidate, left)
    judged = judge(diagnosis, campaign.experiments, run)
    unfinished = tuple(_unfinished(campaign, judged, left))
    missed = tuple(Skipped(EXPERIMENT, (), text) for text in unfinished)
    judged = replace(judged, skipped=(*judged.skipped, *missed))
    return Verification(run, judged, unfinished, left == INTERRUPTED)


def _unfinished(campaign: Campaign, judged: Diagnosis, left: str) -> Iterator[str]:
    """Say what was not tested, also of what was asked for: what is confirmed explains the same."""
    waiting = [c.cause for c in campaign.waiting] if left else []
    yield from (f"{cause}: {left}" for cause in waiting)
    told = {*(e.cause for e in judged.experiments), *waiting}
    proven = [h.cause for h in judged.root_causes if h.confirmed]
    why = f"not needed beside {proven[0]}, which is confirmed" if proven else "nothing tests it"
    yield from (f"{cause}: {why}" for cause in campaign.request.causes if cause not in told)
    if not campaign.experiments and not left:
        yield NOTHING


def _has_stalled(run: Run) -> bool:
    process = main_process(run)
    return process is not None and any(not s.is_over for s in process.stalls)
