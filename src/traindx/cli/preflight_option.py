"""`traindx run --preflight`: a minute of checks on a copy, in place of the command itself."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from traindx.cli import options as shared
from traindx.cli.spoken import say
from traindx.errors import UsageError

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.model.preflight import Checklist

FILES = {"json": "preflight.json", "markdown": "preflight.md", "html": "preflight.html"}


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the option to `run`."""
    parser.add_argument(
        "--preflight",
        action="store_true",
        help="do not run the command; spend a minute on a copy of it on what experts check before "
        "a long job, and say whether it is ready",
    )


def call(options: argparse.Namespace, command: Sequence[str]) -> int:
    """Check a command on a copy, print the checklist, and return 1 if --fail-on says so.

    The command itself does not run, so that standard output is the checklist's.
    """
    if options.verify:
        raise UsageError("--preflight runs nothing that could be verified. Try: one of the two")
    if options.format == "sarif":
        raise UsageError("a preflight has no sarif form. Try: --format json")
    checklist = _checked(options, command)
    if options.output:
        _write(checklist, options.output)
    _print(checklist, options)
    severities = [c.severity.value for c in checklist.failed if c.severity is not None]
    limit = options.fail_on
    return 1 if limit is not None and shared.is_any_at_least(severities, limit) else 0


def _checked(options: argparse.Namespace, command: Sequence[str]) -> Checklist:
    from pathlib import Path

    from traindx import api

    # the shared default is for a diagnosis; here, the object itself tells that nobody gave one
    is_default = options.max_time is shared.DEFAULT_MAX_TIME_S
    with shared.progress(options, "preflight:") as tell:
        return api.preflight(
            command,
            max_time_s=None if is_default else options.max_time,
            keep=Path(options.output, "rerun") if options.output else None,
            tell=tell,
            warn=lambda text: None if options.quiet else say(text),
        )


def _write(checklist: Checklist, output: str) -> None:
    from pathlib import Path

    from traindx.report.checklist import render

    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for format_name, name in FILES.items():
            (folder / name).write_text(render(format_name, checklist), encoding="utf-8")
    except OSError as error:
        why = f"{folder}: cannot write there: {error.strerror}. Try: another --output"
        raise UsageError(why) from error


def _print(checklist: Checklist, options: argparse.Namespace) -> None:
    if options.format != "terminal":
        from traindx.report.checklist import render

        print(render(options.format, checklist))
        return
    if options.quiet:
        print(checklist.summary)
        return
    from rich.console import Console

    from traindx.report.checklist import print_checklist

    print_checklist(checklist, Console(), verbose=options.verbose)
    if options.output:
        say(f"wrote {options.output}")
