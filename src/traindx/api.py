"""The composition root: what the command line, notebooks and assistants call.

Each function imports what it needs when it is called: `run` starts the command before numpy is
loaded, and a plain question is answered without it.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import IO

from traindx.errors import TraindxError, UnknownName, UsageError
from traindx.experiments.probes.probe_request import ProbeRequest
from traindx.experiments.verification.request import VerifyRequest
from traindx.readers.deadline import Deadline, until

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from pathlib import Path as Folder

    from traindx.capture.launcher.live_diagnosis import LiveDiagnosis
    from traindx.capture.launcher.supervisor import CommandOutcome
    from traindx.capture.launcher.voice import Voice
    from traindx.capture.watch import Watch
    from traindx.experiments.probes.probing import ProbedRun
    from traindx.experiments.verification.verification import Verification
    from traindx.fleet.grouping import Scan
    from traindx.model.findings import Diagnosis
    from traindx.model.preflight import Checklist
    from traindx.model.run import Run
    from traindx.specialists.routing import Route

__all__ = [
    "ProbeRequest", "RunResult", "Surface", "VerifyRequest", "check", "check_causes",
    "check_command", "check_run", "diagnose", "diagnose_run", "explain", "explain_name",
    "live_diagnosis", "open_run", "plugin_files", "preflight", "print_diagnosis", "probe",
    "probe_run", "route", "run", "say_unfinished", "scan", "suggest_names", "verify",
    "verify_run", "watch",
]  # fmt: skip

Path = str | os.PathLike[str]
Tell = Callable[[str], None]
Progress = Callable[[str], AbstractContextManager[Tell]]

FEWEST_PASTED_LINES = 3  # of a log or of code, before its curves and calls mean anything
PASTED_MAX_TIME_S = 10.0  # a question is answered while someone waits
_LIVE = "from traindx.api import print_diagnosis; print_diagnosis('.', float(sys.argv[2]))"


def _nothing(label: str) -> None:
    """Tell nobody."""


@contextmanager
def _unseen(doing: str) -> Iterator[Tell]:
    yield _nothing


def open_run(
    *paths: Path,
    context: Path | None = None,
    symptoms: Sequence[str] = (),
    stdin: IO[bytes] | None = None,
    tell: Tell = _nothing,
    max_time_s: float | None = None,
) -> Run:
    """Read everything that the paths hold about one training run.

    A path is a file or a folder, `-` is standard input, and no path means the current folder.
    `tell` hears of each file before it is read; when the time is up reading ends with what it has.
    """
    from traindx.readers.opening import open_paths

    with until(None if max_time_s is None else Deadline.after(max_time_s).ends_s):
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
    from traindx.diagnosis import engine
    from traindx.model.run import Run
    from traindx.report import notebook

    limit = Deadline.after(max_time_s)
    if not isinstance(run, Run):
        run = open_run(run, *more, context=context, symptoms=symptoms, max_time_s=max_time_s)
    found = _with_suspects(engine.diagnose(run, deadline=limit.ends_s), run.symptoms)
    return notebook.remember(found, run)


def diagnose_run(
    *paths: Path,
    context: Path | None = None,
    symptoms: Sequence[str] = (),
    stdin: IO[bytes] | None = None,
    tell: Tell = _nothing,
    max_time_s: float = 300.0,
) -> tuple[Run, Diagnosis]:
    """Read and diagnose within one limit, and return the run together with the diagnosis."""
    limit = Deadline.after(max_time_s)
    run = open_run(
        *paths,
        context=context,
        symptoms=symptoms,
        stdin=stdin,
        tell=tell,
        max_time_s=max_time_s,
    )
    tell("")
    diagnosis = diagnose(run, max_time_s=limit.left_s)
    return run, replace(diagnosis, duration_s=limit.spent_s)


def _with_suspects(diagnosis: Diagnosis, symptoms: Sequence[str]) -> Diagnosis:
    """Add what the user's words make worth checking, where the artifacts show no cause."""
    from traindx.specialists import routing

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
    from traindx.diagnosis.code_check import diagnose_code
    from traindx.readers.source_tree import open_sources
    from traindx.report import notebook

    limit = Deadline.after(max_time_s)
    run = open_sources([os.fspath(p) for p in paths])
    diagnosis = diagnose_code(run, deadline=limit.ends_s)
    return run, notebook.remember(replace(diagnosis, duration_s=limit.spent_s), run)


# --- live -----------------------------------------------------------------------------------------


def watch(
    *given: object,
    output: Path | None = None,
    overhead: float = 0.02,
    hang_after_s: float | None = None,
) -> Watch:
    """Record the training inside a `with` block, as `traindx run` does from outside.

    Models and optimizers are found by themselves; naming them helps where they are well hidden.
    With Accelerate, put the block around the loop, after `prepare`.
    """
    from traindx.capture.watch import Watch

    return Watch(given, diagnose, output=output, overhead=overhead, hang_after_s=hang_after_s)


@dataclass(frozen=True, slots=True)
class RunResult:
    """A command that ended: its exit code, its recording, and the diagnosis if there is one."""

    exit_code: int
    folder: Folder | None = None
    run: Run | None = None
    diagnosis: Diagnosis | None = None


@dataclass(frozen=True, slots=True)
class Surface:
    """How a run is shown to its user: how much is said, its progress, and the result."""

    is_quiet: bool = False
    progress: Progress = _unseen
    report: Callable[[RunResult], None] = lambda result: None


def run(
    command: str | Sequence[str],
    *,
    output: Path | None = None,
    overhead: float = 0.02,
    hang_after_s: float | None = None,
    context: Path | None = None,
    symptoms: Sequence[str] = (),
    max_time_s: float = 300.0,
    verification: VerifyRequest | None = None,
    surface: Surface | None = None,
) -> RunResult:
    """Run a training command as if it were alone, record it, and diagnose it when it has ended.

    Its output, exit code and signals pass through; alerts and remarks go to standard error. With a
    `verification` the diagnosis is tested by experiment. Whatever goes wrong in the diagnosis is
    said, and changes nothing of how the command ended.
    """
    from traindx.capture.launcher.recording_folder import shown
    from traindx.capture.launcher.signals import interruptible
    from traindx.capture.launcher.supervisor import Trip, ride
    from traindx.capture.launcher.voice import Voice

    words = _words_of(command)
    check_command(words, context, verification)
    surface = surface or Surface()
    voice = Voice(is_quiet=surface.is_quiet)
    trip = Trip(words, None if output is None else os.fspath(output), overhead, hang_after_s)
    live = None if surface.is_quiet else live_diagnosis()
    try:
        outcome = ride(trip, voice, None if live is None else live.look)
    finally:
        if live is not None:
            live.stop()
    result = RunResult(outcome.end.shell_code, outcome.folder)
    with interruptible(), _shielded(voice, result):
        _say_how_it_ended(outcome, words, voice)
        if result.folder is not None:
            with surface.progress("reading") as tell:
                found = diagnose_run(
                    shown(result.folder),
                    context=context,
                    symptoms=symptoms,
                    tell=tell,
                    max_time_s=max_time_s,
                )
            if verification is not None:
                found = _tested(words, found, verification, voice, surface.progress)
            result = replace(result, run=found[0], diagnosis=found[1])
            surface.report(result)
    return result


def live_diagnosis() -> LiveDiagnosis:
    """Return what diagnoses a recording while it grows, in processes of its own."""
    from traindx.capture.launcher.live_diagnosis import LiveDiagnosis

    return LiveDiagnosis(_LIVE)


def print_diagnosis(path: Path, max_time_s: float) -> None:
    """Print the diagnosis of a run as JSON; what the processes of a live diagnosis do."""
    from traindx.report import json as json_report

    found, diagnosis = diagnose_run(path, max_time_s=max_time_s)
    print(json_report.render(found, diagnosis))


def _words_of(command: str | Sequence[str]) -> tuple[str, ...]:
    import shlex

    return tuple(shlex.split(command) if isinstance(command, str) else command)


def check_command(
    command: Sequence[str],
    context: Path | None = None,
    verification: VerifyRequest | None = None,
) -> None:
    """Find out before the training, not after it, what makes no sense."""
    if not command:
        raise UsageError("no command to run. Try: traindx run -- python train.py")
    if sys.platform == "win32":
        raise UsageError("traindx run needs Linux or macOS. Try: traindx.watch in the script")
    if context is not None:
        try:
            with open(context, "rb"):  # noqa: PTH123 - pathlib is not needed for anything else
                pass
        except OSError as error:
            raise UsageError(f"{context}: cannot be read: {error.strerror or error}") from error
    if verification is not None:
        check_causes(verification.causes)


@contextmanager
def _shielded(voice: Voice, result: RunResult) -> Iterator[None]:
    """Say what goes wrong with us: the command has ended, and its exit code counts."""
    from traindx.capture.launcher.recording_folder import shown

    kept = f"; the recording is in {shown(result.folder)}" if result.folder is not None else ""
    try:
        yield
    except KeyboardInterrupt:
        voice.say(f"the diagnosis was interrupted{kept}")
    except TraindxError as error:
        voice.say(f"no diagnosis: {error}")
    except Exception as error:
        voice.say(f"the diagnosis failed: {type(error).__name__}: {error}{kept}")


def _say_how_it_ended(outcome: CommandOutcome, command: Sequence[str], voice: Voice) -> None:
    from traindx.capture.launcher.ending import describe, why_unrecorded

    for sentence in describe(outcome.end, outcome.folder, outcome.stalled):
        voice.say(sentence)
    if outcome.folder is not None and not outcome.has_records:
        voice.remark(why_unrecorded(command, has_output=outcome.has_output))


def _tested(
    command: Sequence[str],
    found: tuple[Run, Diagnosis],
    request: VerifyRequest,
    voice: Voice,
    progress: Progress,
) -> tuple[Run, Diagnosis]:
    """Test a diagnosis; what keeps it from being tested costs nothing of the diagnosis itself."""
    voice.remark(f"{found[1].summary} Testing it on a copy")
    try:
        with progress("verifying:") as tell:
            tested = verify_run(
                command,
                *found,
                request=request,
                tell=tell,
                warn=voice.say,
                announce=voice.remark,
            )
    except TraindxError as error:
        voice.say(f"not verified: {error}")
        return found
    except KeyboardInterrupt:
        voice.say("interrupted; not verified")
        return found
    say_unfinished(tested, voice.say, voice.remark)
    return tested.run, tested.diagnosis


# --- experiments ----------------------------------------------------------------------------------


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
    import warnings

    from traindx.model.run import Run

    if run is not None and not isinstance(run, Run):
        run = open_run(run, *more, symptoms=symptoms)
    verified = verify_run(
        _words_of(command),
        run,
        request=VerifyRequest(tuple(causes), tuple(symptoms), max_time_s, max_steps, seeds),
        warn=lambda text: warnings.warn(text, stacklevel=5),
    )
    return verified.diagnosis


def verify_run(
    command: Sequence[str],
    run: Run | None = None,
    diagnosis: Diagnosis | None = None,
    *,
    request: VerifyRequest | None = None,
    tell: Tell = _nothing,
    warn: Tell = _nothing,
    announce: Tell = _nothing,
) -> Verification:
    """Verify as `verify` does, and return the run together with the diagnosis.

    `tell` hears what is being done, `warn` of each side effect that cannot be ruled out, before
    anything runs, `announce` of what is going to be tested and how long it takes.
    """
    from traindx.experiments.verification.verification import verify_command
    from traindx.report import notebook

    request = request or VerifyRequest()
    check_causes(request.causes)
    if not command:
        raise UsageError("no command to rerun. Try: python train.py")
    found = verify_command(
        command, run, diagnosis, request, tell=tell, warn=warn, announce=announce
    )
    return replace(found, diagnosis=notebook.remember(found.diagnosis, found.run))


def probe(
    command: str | Sequence[str],
    run: Run | Path | None = None,
    *more: Path,
    symptoms: Sequence[str] = (),
    max_time_s: float = 300.0,
    max_steps: int | None = None,
    seeds: int | None = None,
) -> Diagnosis:
    """Find the change that helps a run that learns, only worse than it could.

    The command is rerun on copies with one change each. What came of it is in `probing` of the
    diagnosis: the changes, the floors, and what was left out.
    """
    import warnings

    from traindx.model.run import Run

    if run is not None and not isinstance(run, Run):
        run = open_run(run, *more, symptoms=symptoms)
    found = probe_run(
        _words_of(command),
        run,
        request=ProbeRequest(tuple(symptoms), max_time_s, max_steps, seeds),
        warn=lambda text: warnings.warn(text, stacklevel=5),
    )
    return found.diagnosis


def probe_run(
    command: Sequence[str],
    run: Run | None = None,
    *,
    request: ProbeRequest | None = None,
    tell: Tell = _nothing,
    warn: Tell = _nothing,
    announce: Tell = _nothing,
) -> ProbedRun:
    """Probe as `probe` does, and return the run together with the diagnosis."""
    from traindx.experiments.probes.probing import probe_command
    from traindx.report import notebook

    check_causes(())
    if not command:
        raise UsageError("no command to rerun. Try: python train.py")
    found = probe_command(
        tuple(command), run, request or ProbeRequest(), tell=tell, warn=warn, announce=announce
    )
    return replace(found, diagnosis=notebook.remember(found.diagnosis, found.run))


def say_unfinished(found: Verification, say: Tell, remark: Tell) -> None:
    """Say what of a verification was left undone; `remark` is for what need not be heard."""
    if found.is_interrupted:
        say("interrupted; this is what is known")
    for left in found.unfinished:
        remark(f"not tested: {left}")


def check_causes(names: Sequence[str]) -> None:
    """Raise for a cause that nobody knows, and for a system that reruns need."""
    if sys.platform == "win32":
        raise UsageError("reruns on a copy need Linux or macOS")
    if not names:
        return
    from traindx.causes import all_causes

    for name in names:
        if name not in all_causes():
            near = [n for n in suggest_names(name) if n in all_causes()]
            hint = " or ".join(near) or "traindx explain --list"
            raise UnknownName(f"no cause is called {name!r}. Try: {hint}")


def preflight(
    command: str | Sequence[str],
    *,
    max_time_s: float | None = None,
    keep: Path | None = None,
    tell: Tell = _nothing,
    warn: Tell = _nothing,
) -> Checklist:
    """Check on a copy what experts check before a long job; the command itself does not run."""
    from traindx.experiments.preflight.rehearsal import preflight_command

    return preflight_command(
        _words_of(command), max_time_s=max_time_s, keep=keep, tell=tell, warn=warn
    )


def scan(
    *folders: Path,
    workers: int | None = None,
    max_time_s: float = 300.0,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> Scan:
    """Diagnose every run below the folders, ranked by trouble and grouped by cause."""
    from traindx.fleet import local

    deadline = Deadline.after(max_time_s).ends_s
    return local.scan(
        [os.fspath(f) for f in folders], workers=workers, deadline=deadline, tell=tell
    )


# --- words ----------------------------------------------------------------------------------------


def explain_name(name: str) -> str:
    """Return in Markdown what a cause or a detector is, or the playbook of a specialist."""
    from traindx.report import catalogue
    from traindx.specialists import playbooks

    wanted = catalogue.spelt(name)
    if wanted in playbooks.NAMES:
        return playbooks.playbook_named(wanted).body.rstrip()
    return catalogue.explain_name(name)


def suggest_names(wrong: str) -> list[str]:
    """Return the names of causes, detectors and specialists that were probably meant."""
    from traindx.report import catalogue
    from traindx.specialists import playbooks

    return catalogue.suggest_names(wrong, playbooks.NAMES)


def plugin_files(*, plain: bool = False) -> dict[str, str]:
    """Return the plugin for coding assistants as texts by path; plain, its skills alone."""
    from traindx.report import reference
    from traindx.specialists import playbooks
    from traindx.specialists.plugin import plugin_files as plugin

    causes = {name: reference.causes_of_page(name) for name in playbooks.NAMES}
    pages = plugin.ReferencePages(
        modes=reference.modes_page(),
        fixes=reference.fixes_page(),
        detectors=reference.detector_pages(),
        causes={name: page for name, page in causes.items() if page is not None},
    )
    return plugin.skill_files(pages) if plain else plugin.plugin_files(pages)


def explain(what: str) -> str:
    """Say in Markdown what a cause or a detector is, or what an error text means."""
    from traindx import report
    from traindx.report import catalogue, notebook

    try:
        return notebook.MarkdownText(explain_name(what))
    except UnknownName as error:
        if catalogue.is_like_a_name(what):
            near = suggest_names(what)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise UnknownName(f"{error}{hint}") from None
    run = open_run("-", stdin=io.BytesIO(what.encode("utf-8", "replace")))
    return notebook.MarkdownText(report.render("markdown", run, diagnose(run)))


def route(question: str) -> Route:
    """Say which specialists a question in words needs, in which order; or ask; or decline.

    An error, a log or a traceback pasted with the question is read as `diagnose` reads it.
    """
    from traindx.specialists import routing

    return routing.route(question, _causes_told(question))


def _causes_told(question: str) -> dict[str, float]:
    """The causes that the detectors see in what was pasted, by confidence."""
    from traindx.diagnosis import engine
    from traindx.specialists import routing
    from traindx.tracebacks import parse_failures

    pasted = routing.split_sections(question).pasted
    if not parse_failures(question, "") and pasted.count("\n") < FEWEST_PASTED_LINES:
        return {}
    try:
        run = open_run("-", stdin=io.BytesIO(question.encode()))
        found = engine.diagnose(run, deadline=Deadline.after(PASTED_MAX_TIME_S).ends_s)
    except TraindxError:
        return {}
    return {h.cause: h.confidence for h in found.root_causes}
