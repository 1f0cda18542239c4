"""The options that every diagnosing command shares, and what they mean for the outcome."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from traindx.errors import UsageError

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.evidence import Diagnosis
    from traindx.model import Run

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
        "--context", metavar="FILE", help="a context package: artifacts by role, symptoms"
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
        help="report what is known by then (default: %(default).0f)",
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
    loudness.add_argument("--verbose", action="store_true", help="print every finding")


@contextmanager
def progress(options: argparse.Namespace) -> Iterator[Callable[[str], None]]:
    """Show on a terminal which file is being read; elsewhere show nothing."""
    if options.quiet or not sys.stderr.isatty():
        yield lambda label: None
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("reading …") as status:
        yield lambda label: status.update(f"reading {escape(label)} …")


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
        print(f"traindx: wrote {options.output}", file=sys.stderr)
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
