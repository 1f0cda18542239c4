"""`traindx run`: ride along with a training command, and diagnose it when it has ended."""

from __future__ import annotations

import argparse
import sys
import time

from traindx.cli import options as shared
from traindx.cli import preflight_option
from traindx.errors import TraindxError, UsageError

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.evidence import Diagnosis
    from traindx.model import Run
    from traindx.ride.looking import Looker
    from traindx.ride.riding import Outcome
    from traindx.ride.voice import Voice

USAGE = "%(prog)s [OPTIONS] -- COMMAND..."
FILES = {"json": "diagnosis.json", "markdown": "report.md", "html": "report.html"}
LARGEST_OVERHEAD = 0.5


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="ride along with a training command: alerts, a recording, a diagnosis at the end",
        usage=USAGE,
        description="Run any training command as if it were alone, and record what happens inside: "
        "alerts while it runs, a diagnosis at the end. Its output, exit code and signals pass "
        "through unchanged.",
    )
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="COMMAND",
        help="after --: python train.py, torchrun …, accelerate launch …, a shell script",
    )
    parser.add_argument(
        "--overhead",
        type=_share,
        default=0.02,
        metavar="SHARE",
        help="how much longer a step may take for being recorded (default: 2%%)",
    )
    parser.add_argument(
        "--hang-after",
        type=_seconds,
        metavar="SECONDS",
        help="without progress for so long it hangs (default: many times the usual step)",
    )
    parser.add_argument(
        "--context", metavar="FILE", help="a context package: artifacts by role, symptoms"
    )
    shared.add_verify(parser, "the command")
    preflight_option.add_to(parser)
    shared.add_diagnosing(parser)
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Ride along, say how it ended, diagnose, and return the command's own exit code."""
    command = tuple(options.command[1:] if options.command[:1] == ["--"] else options.command)
    if not command:
        raise UsageError("no command to run. Try: traindx run -- python train.py")
    if sys.platform == "win32":
        raise UsageError("traindx run needs Linux or macOS. Try: traindx.watch in the script")
    _check_context(options.context)
    if options.preflight:
        return preflight_option.call(options, command)
    if options.verify:
        from traindx.cli.verify import check_causes

        check_causes(options)
    from traindx.ride.launch import NotStarted
    from traindx.ride.riding import Trip, ride
    from traindx.ride.voice import Voice

    voice = Voice(is_quiet=options.quiet)
    trip = Trip(command, options.output, options.overhead, options.hang_after)
    looker = _looker(options)
    try:
        outcome = ride(trip, voice, None if looker is None else looker.look)
    except NotStarted as error:
        voice.say(error.why)
        return error.exit_code
    finally:
        if looker is not None:
            looker.stop()
    try:
        _let_requests_to_end_interrupt()
        _report(outcome, command, options, voice)
    except KeyboardInterrupt:
        voice.say(f"the diagnosis was interrupted{_kept(outcome)}")
    except TraindxError as error:
        voice.say(f"no diagnosis: {error}")
    except Exception as error:  # whatever is wrong with us, the command's exit code counts
        voice.say(f"the diagnosis failed: {type(error).__name__}: {error}{_kept(outcome)}")
    return outcome.end.shell_code


def _check_context(path: str | None) -> None:
    """Find out before the training, not after it."""
    if path is None:
        return
    try:
        with open(path, "rb"):  # noqa: PTH123 - pathlib costs more than the rest of this module
            return
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error


def _looker(options: argparse.Namespace) -> Looker | None:
    if options.quiet:
        return None
    from traindx.ride.looking import Looker

    return Looker()


def _let_requests_to_end_interrupt() -> None:
    """A scheduler that wants us gone gets the command's exit code, as an impatient user does."""
    import signal

    for wanted in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(wanted) == signal.SIG_DFL:
            signal.signal(wanted, signal.default_int_handler)


def _report(
    outcome: Outcome, command: tuple[str, ...], options: argparse.Namespace, voice: Voice
) -> None:
    from traindx.ride.ending import describe

    for sentence in describe(outcome.end, outcome.folder, outcome.stalled):
        voice.say(sentence)
    if outcome.folder is None:
        return
    if not outcome.has_records:
        voice.remark(_why_unrecorded(tuple(options.command), has_output=outcome.has_output))
    run, diagnosis = _diagnose(outcome, options)
    if options.verify:
        run, diagnosis = _verify(run, diagnosis, command, options, voice)
    _show(run, diagnosis, options)
    _write(run, diagnosis, outcome, options, voice)


def _why_unrecorded(command: tuple[str, ...], *, has_output: bool) -> str:
    isolated = _isolating(command)
    why = (
        "no process below the command imported torch, "
        "or Python ran with -I or -E or with another PYTHONPATH"
    )
    if isolated is not None:
        why = f"Python was started with {isolated}, which keeps the recorder out"
    then = "; diagnosing from the output" if has_output else ", and it printed nothing"
    return f"nothing was recorded inside ({why}){then}"


def _isolating(command: tuple[str, ...]) -> str | None:
    """Return the option of Python that makes it ignore the environment, if there is one."""
    names = [word.rpartition("/")[2] for word in command]
    at = next((i for i, name in enumerate(names) if name.startswith("python")), len(names))
    for word in command[at + 1 :]:
        if not word.startswith("-") or word[:2] in ("-c", "-m", "-"):
            return None
        if word[:2] not in ("-W", "-X", "--") and {"I", "E"} & set(word):
            return word
    return None


def _diagnose(outcome: Outcome, options: argparse.Namespace) -> tuple[Run, Diagnosis]:
    from dataclasses import replace

    from traindx import api
    from traindx.ride.folder import shown

    assert outcome.folder is not None
    started = time.monotonic()
    with shared.progress(options) as tell:
        run = api.open_run(
            shown(outcome.folder),
            context=options.context,
            symptoms=options.symptom,
            tell=tell,
            deadline=started + options.max_time,
        )
    remaining = options.max_time - (time.monotonic() - started)
    diagnosis = api.diagnose(run, max_time_s=remaining)
    return run, replace(diagnosis, duration_s=time.monotonic() - started)


def _verify(
    run: Run,
    diagnosis: Diagnosis,
    command: tuple[str, ...],
    options: argparse.Namespace,
    voice: Voice,
) -> tuple[Run, Diagnosis]:
    """Test the diagnosis; what keeps it from being tested costs nothing of the diagnosis itself."""
    from traindx.cli.verify import verify_with

    voice.remark(f"{diagnosis.summary} Testing it on a copy")
    try:
        verified = verify_with(command, run, diagnosis, options)
    except TraindxError as error:
        voice.say(f"not verified: {error}")
        return run, diagnosis
    except KeyboardInterrupt:
        voice.say("interrupted; not verified")
        return run, diagnosis
    return verified.run, verified.diagnosis


def _show(run: Run, diagnosis: Diagnosis, options: argparse.Namespace) -> None:
    """Print the report on standard error: standard output belongs to the command."""
    if options.format != "terminal":
        return
    if options.quiet:
        print(diagnosis.summary, file=sys.stderr)
        return
    from rich.console import Console

    from traindx.report.terminal import print_report

    print(file=sys.stderr)
    print_report(run, diagnosis, Console(stderr=True), verbose=options.verbose)


def _write(
    run: Run, diagnosis: Diagnosis, outcome: Outcome, options: argparse.Namespace, voice: Voice
) -> None:
    from traindx.report.bundle import write_bundle
    from traindx.ride.folder import shown

    folder = outcome.folder
    assert folder is not None
    try:
        write_bundle(run, diagnosis, folder)
        if options.format == "sarif":
            from traindx.report import render

            (folder / "report.sarif").write_text(render("sarif", run, diagnosis), encoding="utf-8")
    except OSError as error:
        voice.say(f"{folder}: the report cannot be written there: {error.strerror or error}")
        return
    wanted = "report.sarif" if options.format == "sarif" else FILES.get(options.format, "")
    voice.remark(f"wrote {shown(folder / wanted)}")


def _kept(outcome: Outcome) -> str:
    from traindx.ride.folder import shown

    return f"; the recording is in {shown(outcome.folder)}" if outcome.folder else ""


def _share(text: str) -> float:
    """Read a share as a percentage or as a fraction."""
    number = text.strip()
    try:
        share = float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        share = -1.0
    if not 0 < share <= LARGEST_OVERHEAD:
        raise argparse.ArgumentTypeError(f"{text!r} is no share such as 2% or 0.02")
    return share


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return seconds
