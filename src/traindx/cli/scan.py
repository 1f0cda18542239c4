"""`traindx scan`: many runs, ranked by trouble, grouped by cause."""

from __future__ import annotations

import argparse
import sys

from traindx.cli import options as shared

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.fleet.grouping import Scan


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "scan",
        help="diagnose many runs: a table, the worst first, grouped by cause",
        description="Diagnose every run below the folders: one row a run, the worst first.",
    )
    parser.add_argument("folders", nargs="+", metavar="DIR", help="a folder with runs in it")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: all cores)")
    shared.add_format(parser, ("terminal", "json"))
    shared.add_limits(parser)
    shared.add_loudness(parser)
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Scan and show."""
    from traindx import api

    is_shown = sys.stderr.isatty() and not options.quiet
    found = api.scan(
        *options.folders,
        workers=options.workers,
        max_time_s=options.max_time,
        tell=_progress if is_shown else lambda done, of: None,
    )
    if is_shown:
        print("\r\x1b[K", end="", file=sys.stderr)
    if options.format == "json":
        import json

        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    else:
        _print(found, options)
    severities = [r.severity for r in found.rows if r.severity]
    return 1 if options.fail_on and shared.is_any_at_least(severities, options.fail_on) else 0


def _progress(done: int, of: int) -> None:
    print(f"\r{done} of {of} runs", end="", file=sys.stderr, flush=True)


def _print(found: Scan, options: argparse.Namespace) -> None:
    from rich.console import Console

    from traindx.report.scan_table import print_scan

    if options.quiet:
        ill = sum(bool(row.causes) for row in found.rows)
        print(f"{ill} of {len(found.rows)} runs have a root cause")
        return
    print_scan(found.to_dict(), Console(), verbose=options.verbose)
