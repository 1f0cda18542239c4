"""`traindx run`: ride along with a training command, and diagnose it when it has ended."""

from __future__ import annotations

import argparse
import sys

from traindx.cli import options as shared
from traindx.cli import preflight_option, reruns
from traindx.errors import NotStarted

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from pathlib import Path

    from traindx.api import RunResult
    from traindx.model.findings import Diagnosis
    from traindx.model.run import Run

USAGE = "%(prog)s [OPTIONS] -- COMMAND..."
FILES = {"json": "diagnosis.json", "markdown": "report.md", "html": "report.html"}
LARGEST_OVERHEAD = 0.5


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="run a training command with alerts, a recording and a diagnosis at the end",
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
        help="a run hangs after this long without progress (default: many times the usual step)",
    )
    parser.add_argument(
        "--context", metavar="FILE", help="a context package (artifacts by role, symptoms)"
    )
    shared.add_verify(parser, "the command")
    preflight_option.add_to(parser)
    shared.add_diagnosing(parser)
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Ride along, say how it ended, diagnose, and return the command's own exit code."""
    from traindx import api

    command = tuple(options.command[1:] if options.command[:1] == ["--"] else options.command)
    if options.preflight:
        api.check_command(command, options.context)
        return preflight_option.call(options, command)
    try:
        result = api.run(
            command,
            output=options.output,
            overhead=options.overhead,
            hang_after_s=options.hang_after,
            context=options.context,
            symptoms=options.symptom,
            max_time_s=options.max_time,
            verification=reruns.request_of(options) if options.verify else None,
            surface=api.Surface(
                options.quiet,
                lambda doing: shared.progress(options, doing),
                lambda result: _report(result, options),
            ),
        )
    except NotStarted as error:
        from traindx.capture.launcher.voice import Voice

        Voice().say(error.why)
        return error.exit_code
    return result.exit_code


def _report(result: RunResult, options: argparse.Namespace) -> None:
    assert result.run is not None and result.diagnosis is not None and result.folder is not None
    _show(result.run, result.diagnosis, options)
    _write(result.run, result.diagnosis, result.folder, options)


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


def _write(run: Run, diagnosis: Diagnosis, folder: Path, options: argparse.Namespace) -> None:
    from traindx.capture.launcher.recording_folder import shown
    from traindx.capture.launcher.voice import Voice
    from traindx.report.bundle import write_bundle

    voice = Voice(is_quiet=options.quiet)
    wanted = "report.sarif" if options.format == "sarif" else FILES.get(options.format, "")
    try:
        write_bundle(run, diagnosis, folder)
        if options.format == "sarif":
            from traindx.report import render

            (folder / wanted).write_text(render("sarif", run, diagnosis), encoding="utf-8")
    except OSError as error:
        voice.say(f"{folder}: the report cannot be written there: {error.strerror or error}")
        return
    voice.remark(f"wrote {shown(folder / wanted)}")


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
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds
