"""The options that every diagnosing command shares, and what they mean for the outcome."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from traindx.cli.spoken import say
from traindx.errors import UsageError

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.model.findings import Diagnosis
    from traindx.model.run import Run

FORMATS = ("terminal", "json", "markdown", "html", "sarif")
SEVERITIES = ("low", "medium", "high", "critical")
DEFAULT_MAX_TIME_S = 300.0


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add what says where to read a run from."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="a file or a folder; - reads a log or traceback from standard input; "
        "no path means the current folder",
    )
    parser.add_argument(
        "--context", metavar="FILE", help="a context package (artifacts by role, symptoms)"
    )


def add_diagnosing(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that ends in a diagnosis."""
    parser.add_argument(
        "--symptom",
        action="append",
        default=[],
        metavar="TEXT",
        help="what you saw, in words (may be repeated)",
    )
    add_format(parser)
    parser.add_argument(
        "--output",
        metavar="DIR",
        help="write everything there: diagnosis.json, report.html, report.md, figures, fix.patch",
    )
    add_limits(parser)
    add_loudness(parser)


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add when to stop, and what counts as failure."""
    parser.add_argument(
        "--max-time",
        type=float,
        default=DEFAULT_MAX_TIME_S,
        metavar="SECONDS",
        help="stop by then and report what is known (default: %(default).0f)",
    )
    parser.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        metavar="SEVERITY",
        help=f"exit with 1 if a cause is at least this severe: {', '.join(SEVERITIES)}",
    )


def add_format(parser: argparse.ArgumentParser, choices: tuple[str, ...] = FORMATS) -> None:
    """Add the choice of the output's format."""
    parser.add_argument(
        "--format", choices=choices, default="terminal", help="default: %(default)s"
    )


def add_loudness(parser: argparse.ArgumentParser) -> None:
    """Add how much to say."""
    loudness = parser.add_mutually_exclusive_group()
    loudness.add_argument("--quiet", action="store_true", help="print the verdict only")
    loudness.add_argument(
        "--verbose", action="store_true", help="print every finding and every check"
    )


def add_verify(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the wish to have a diagnosis tested, and what bounds it."""
    parser.add_argument(
        "--verify",
        action="store_true",
        help=f"then test the diagnosis: rerun {what} on a copy, with the remedy in place",
    )
    add_verifying(parser)


def add_verifying(parser: argparse.ArgumentParser) -> None:
    """Add what bounds the experiments of a verification."""
    parser.add_argument(
        "--cause",
        action="append",
        default=[],
        metavar="NAME",
        help="test this cause, whether the diagnosis lists it or not (may be repeated; "
        "default: the leading hypotheses)",
    )
    add_rerun_bounds(parser)


def add_rerun_bounds(parser: argparse.ArgumentParser) -> None:
    """Add how long each rerun is, and how many seeds it is made with."""
    parser.add_argument(
        "--max-steps",
        type=_count,
        metavar="N",
        help="stop each rerun after N steps (default: enough to show the symptom)",
    )
    parser.add_argument(
        "--seeds",
        type=_count,
        metavar="N",
        help="rerun with N seeds (default: chosen by the noise and the time)",
    )


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no count such as 3")
    return int(text)


@contextmanager
def progress(
    options: argparse.Namespace, doing: str = "reading"
) -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is being done, by default which file is read; elsewhere nothing."""
    if options.quiet or not sys.stderr.isatty():
        yield lambda label: None
        return
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    room = max(console.width - len(doing) - 6, 10)  # a second line would leave traces
    with console.status(f"{doing} …") as status:
        yield lambda label: status.update(
            f"{doing} {escape(label[:room])} …" if label else "diagnosing …"
        )


def deliver(
    run: Run,
    diagnosis: Diagnosis,
    options: argparse.Namespace,
    show: Callable[[Run, Diagnosis, argparse.Namespace], None] | None = None,
    render: Callable[[str, Run, Diagnosis], str] | None = None,
) -> int:
    """Write and print a diagnosis as asked, and return the exit code.

    `show` prints it on the terminal instead of the usual report, `render` makes the other formats.
    """
    from dataclasses import replace

    if options.output:
        made = _write(run, diagnosis, options.output)
        diagnosis = replace(diagnosis, analysis_artifacts=made)
    is_shown = show is not None and options.format == "terminal" and not options.quiet
    if render is not None and options.format != "terminal":
        print(render(options.format, run, diagnosis))
    else:
        (show if show is not None and is_shown else _print)(run, diagnosis, options)
    if options.output and options.format == "terminal" and not options.quiet:
        say(f"wrote {options.output}")
    return 1 if _is_too_severe(diagnosis, options.fail_on) else 0


def _write(run: Run, diagnosis: Diagnosis, output: str) -> dict[str, str]:
    from pathlib import Path

    from traindx.report.bundle import write_bundle

    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return dict(write_bundle(run, diagnosis, folder))
    except OSError as error:
        why = f"{folder}: cannot write there: {error.strerror}. Try: another --output"
        raise UsageError(why) from error


def _print(run: Run, diagnosis: Diagnosis, options: argparse.Namespace) -> None:
    if options.format == "terminal" and options.quiet:
        print(diagnosis.summary)
    elif options.format == "terminal":
        from rich.console import Console

        from traindx.report.terminal import print_report

        print_report(run, diagnosis, Console(), verbose=options.verbose)
    else:
        from traindx.report import render

        print(render(options.format, run, diagnosis))


def _is_too_severe(diagnosis: Diagnosis, limit: str | None) -> bool:
    found = [h.severity.value for h in diagnosis.root_causes]
    return limit is not None and is_any_at_least(found, limit)


def is_any_at_least(severities: list[str], limit: str) -> bool:
    """Tell whether one of the severities reaches a limit."""
    return any(SEVERITIES.index(s) >= SEVERITIES.index(limit) for s in severities)
