"""The composition root: what the command line, notebooks and assistants call."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import IO

from traindx import catalogue, notebook, patience, routing
from traindx import diagnosis as engine
from traindx.artifacts import open_paths
from traindx.artifacts.sources import open_sources
from traindx.causes import all_causes
from traindx.errors import TraindxError, UnknownName, UsageError
from traindx.evidence import EXPERIMENT, Diagnosis, Skipped
from traindx.failures import parse_failures
from traindx.model import Run
from traindx.source import project_of

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.experiments.verification import Verification
    from traindx.experiments.workshop import Workshop

Path = str | os.PathLike[str]
FEWEST_PASTED_LINES = 3  # of a log or of code, before its curves and calls mean anything
PASTED_MAX_TIME_S = 10.0  # a question is answered while someone waits
FIRST_RUN_SHARE = 0.3  # of the time, where nothing is known yet; the rest is for the experiments

notebook.enable()


def open_run(
    *paths: Path,
    context: Path | None = None,
    symptoms: Sequence[str] = (),
    stdin: IO[bytes] | None = None,
    tell: Callable[[str], None] = lambda label: None,
    deadline: float | None = None,
) -> Run:
    """Read everything that the paths hold about one training run.

    A path is a file or a folder, `-` is standard input, and no path means the current folder.
    `tell` hears of each file before it is read; at the deadline reading ends with what it has.
    """
    with patience.until(deadline):
        return open_paths(
            [os.fspath(p) for p in paths],
            stdin=stdin,
            context=None if context is None else os.fspath(context),
            symptoms=symptoms,
            tell=tell,
        )


def diagnose(
    run: Run | Path,
    *more: Path,
    context: Path | None = None,
    symptoms: Sequence[str] = (),
    max_time_s: float = 300.0,
) -> Diagnosis:
    """Say what went wrong in a run, on what evidence, and what to change.

    Give a `Run`, or the paths of its artifacts.
    """
    deadline = time.monotonic() + max_time_s
    if not isinstance(run, Run):
        run = open_run(run, *more, context=context, symptoms=symptoms, deadline=deadline)
    found = _with_suspects(engine.diagnose(run, deadline=deadline), run.symptoms)
    return notebook.remember(found, run)


def _with_suspects(diagnosis: Diagnosis, symptoms: Sequence[str]) -> Diagnosis:
    """Add what the user's words make worth checking, where the artifacts show no cause."""
    is_open = bool(symptoms) and not diagnosis.root_causes
    named = routing.route(" ".join(symptoms)).candidates if is_open else ()
    if not named:
        return diagnosis
    said = (
        "What you report makes these worth checking first, though words alone show none of them: "
        f"{', '.join(named)} (`traindx explain NAME`)"
    )
    return replace(diagnosis, questions=(*diagnosis.questions, said))


def check(*paths: Path, max_time_s: float = 300.0) -> Diagnosis:
    """Say which faults the training code below the paths has, from its source alone."""
    return check_run(*paths, max_time_s=max_time_s)[1]


def check_run(*paths: Path, max_time_s: float = 300.0) -> tuple[Run, Diagnosis]:
    """Check training code as `check` does, and return it as a run together with the diagnosis."""
    deadline = time.monotonic() + max_time_s
    started = time.monotonic()
    run = open_sources([os.fspath(p) for p in paths])
    diagnosis = engine.diagnose(run, deadline=deadline)
    missed = tuple(s for s in diagnosis.skipped if not s.detector or not s.needs)
    parsed = {m.path for m in project_of(run).modules}
    broken = [s.path for s in run.sources if s.path not in parsed]
    unparsed = tuple(Skipped("", (p,), f"{p}: not Python that can be parsed") for p in broken)
    summary = diagnosis.summary
    if not diagnosis.root_causes:
        count = f"{len(run.sources)} {'file' if len(run.sources) == 1 else 'files'}"
        summary = f"No fault shown in {count}." if run.sources else "No file here uses torch."
    diagnosis = replace(
        diagnosis,
        summary=summary,
        skipped=(*missed, *unparsed),
        duration_s=time.monotonic() - started,
    )
    return run, diagnosis


@dataclass(frozen=True, slots=True)
class Wishes:
    """What to test and within which bounds; None leaves it to the run."""

    causes: tuple[str, ...] = ()
    symptoms: tuple[str, ...] = ()
    max_time_s: float = 300.0
    max_steps: int | None = None
    seeds: int | None = None
    keep: Path | None = None  # where a first run on a copy is kept; by default in a new folder


@dataclass(frozen=True, slots=True)
class Verified:
    """A run and its diagnosis with the experiments in it, and what was left undone."""

    run: Run
    diagnosis: Diagnosis
    unfinished: tuple[str, ...] = ()
    is_interrupted: bool = False
    recording: str | None = None  # where the first run on a copy was kept, if there was one


def verify(
    command: str | Sequence[str],
    run: Run | Path | None = None,
    *more: Path,
    causes: Sequence[str] = (),
    symptoms: Sequence[str] = (),
    max_time_s: float = 300.0,
    max_steps: int | None = None,
    seeds: int | None = None,
) -> Diagnosis:
    """Test the causes of a diagnosis by rerunning the command on a copy with the remedy in place.

    Give the run that went wrong, or the paths of its artifacts; without, the command is first run
    on a copy. `causes` are tested instead of the leading hypotheses.
    """
    import shlex
    import warnings

    if run is not None and not isinstance(run, Run):
        run = open_run(run, *more, symptoms=symptoms)
    wishes = Wishes(tuple(causes), tuple(symptoms), max_time_s, max_steps, seeds)
    verified = verify_run(
        shlex.split(command) if isinstance(command, str) else command,
        run,
        wishes=wishes,
        warn=lambda text: warnings.warn(f"side effect not ruled out: {text}", stacklevel=4),
    )
    return notebook.remember(verified.diagnosis, verified.run)


def verify_run(
    command: Sequence[str],
    run: Run | None = None,
    diagnosis: Diagnosis | None = None,
    *,
    wishes: Wishes | None = None,
    tell: Callable[[str], None] = lambda label: None,
    warn: Callable[[str], None] = lambda text: None,
) -> Verified:
    """Verify as `verify` does, and return the run together with the diagnosis.

    `tell` hears what is being done, `warn` of each side effect that cannot be ruled out, before
    anything runs.
    """
    from pathlib import Path as Folder

    from traindx.experiments.workshop import Workshop

    wishes = wishes or Wishes()
    check_causes(wishes.causes)
    if not command:
        raise UsageError("no command to rerun. Try: python train.py")
    started = time.monotonic()
    deadline = started + wishes.max_time_s
    recording = None
    place = (tuple(command), Folder.cwd(), os.environ, tell)
    with Workshop(*place, written_since_s=_began_s(run)) as workshop:
        for warning in workshop.warnings:
            warn(warning)
        if run is None:
            recording = _first_run(workshop, wishes)
            run = open_run(recording, symptoms=wishes.symptoms, tell=tell, deadline=deadline)
        if diagnosis is None:
            diagnosis = engine.diagnose(run, deadline=deadline)
        left = replace(wishes, max_time_s=deadline - time.monotonic())
        verified = _verified(run, diagnosis, workshop, left, tell)
    diagnosis = replace(verified.diagnosis, duration_s=time.monotonic() - started)
    return replace(verified, diagnosis=diagnosis, recording=recording)


def check_causes(names: Sequence[str]) -> None:
    """Raise for a cause that nobody knows."""
    for name in names:
        if name not in all_causes():
            near = [n for n in catalogue.suggest_names(name) if n in all_causes()]
            hint = " or ".join(near) or "traindx explain --list"
            raise UnknownName(f"no cause is called {name!r}. Try: {hint}")


def _began_s(run: Run | None) -> float | None:
    """Return when a recorded run began: what it wrote since is no part of what it found."""
    ending = run.recording.ending if run is not None and run.recording is not None else None
    return ending.started_s if ending is not None else None


def _first_run(workshop: Workshop, wishes: Wishes) -> str:
    """Run the command once on a copy, as it is, and keep its recording for the evidence in it."""
    import shutil

    from traindx.experiments.changes import AS_IT_IS, Limits
    from traindx.ride.folder import make_folder, shown

    limits = Limits(FIRST_RUN_SHARE * wishes.max_time_s, wishes.max_steps)
    rerun = workshop.rerun(AS_IT_IS, 0, limits)
    keep = None if wishes.keep is None else os.fspath(wishes.keep)
    folder = make_folder(keep, workshop.command)
    reports = shutil.ignore_patterns("interventions-*.json")  # of the guard, none of the run's
    shutil.copytree(rerun.folder, folder, dirs_exist_ok=True, ignore=reports)
    return shown(folder)


def _verified(
    run: Run,
    diagnosis: Diagnosis,
    workshop: Workshop,
    wishes: Wishes,
    tell: Callable[[str], None],
) -> Verified:
    from traindx.experiments import verification

    stage = ""

    def follow(done: int, total: int, text: str) -> None:
        nonlocal stage
        stage = f"experiment {min(done + 1, total)} of {total}"
        tell(f"{stage}: {text}")

    found = verification.verify(
        run,
        diagnosis,
        workshop,
        causes=wishes.causes,
        max_time_s=wishes.max_time_s,
        max_steps=wishes.max_steps,
        seeds=wishes.seeds,
        tell=lambda label: tell(f"{stage}: {label}" if stage else label),
        progress=follow,
    )
    note = (found.note,) if found.note else ()
    left = (*found.unfinished, *_left_out(found, wishes.causes), *note)
    missed = tuple(Skipped(EXPERIMENT, (), text) for text in left)
    diagnosis = replace(found.diagnosis, skipped=(*found.diagnosis.skipped, *missed))
    return Verified(found.run, diagnosis, left, found.is_interrupted)


def _left_out(found: Verification, causes: Sequence[str]) -> tuple[str, ...]:
    """Name what was asked for and not tested: what is confirmed explains the same."""
    told = {e.cause for e in found.diagnosis.experiments}
    told |= {text.partition(":")[0] for text in found.unfinished}
    proven = [h.cause for h in found.diagnosis.root_causes if h.confirmed]
    why = f"not needed beside {proven[0]}, which is confirmed" if proven else "nothing tests it"
    return tuple(f"{cause}: {why}" for cause in causes if cause not in told)


def explain(what: str) -> str:
    """Say in Markdown what a cause or a detector is, or what an error text means."""
    try:
        return notebook.MarkdownText(catalogue.explain_name(what))
    except UnknownName as error:
        if catalogue.is_like_a_name(what):
            near = catalogue.suggest_names(what)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise UnknownName(f"{error}{hint}") from None
    from traindx import report

    run = open_run("-", stdin=io.BytesIO(what.encode("utf-8", "replace")))
    return notebook.MarkdownText(report.render("markdown", run, diagnose(run)))


def route(question: str) -> routing.Route:
    """Say which specialists a question in words needs, in which order; or ask; or decline.

    An error, a log or a traceback pasted with the question is read as `diagnose` reads it.
    """
    return routing.route(question, _causes_told(question))


def _causes_told(question: str) -> dict[str, float]:
    """The causes that the detectors see in what was pasted, by confidence."""
    pasted = routing.split_sections(question).pasted
    if not parse_failures(question, "") and pasted.count("\n") < FEWEST_PASTED_LINES:
        return {}
    try:
        run = open_run("-", stdin=io.BytesIO(question.encode()))
        found = engine.diagnose(run, deadline=time.monotonic() + PASTED_MAX_TIME_S)
    except TraindxError:
        return {}
    return {h.cause: h.confidence for h in found.root_causes}
