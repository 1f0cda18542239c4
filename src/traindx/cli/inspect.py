"""`traindx inspect`: look without judging."""

from __future__ import annotations

import argparse
import sys

from traindx.cli import options as shared


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "inspect",
        help="show metrics, ranges, last values and settings, without a diagnosis",
        description="Show what a run's artifacts hold, without judging it.",
    )
    shared.add_reading(parser)
    shared.add_format(parser, ("terminal", "json"))
    parser.add_argument("--verbose", action="store_true", help="show everything, however long")
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Read and show."""
    import json

    from rich.console import Console

    from traindx import api
    from traindx.readers.formats.recording.kept_step import kept_batches
    from traindx.report.inspection import print_inspection, to_dict

    run = api.open_run(*options.paths, context=options.context, stdin=sys.stdin.buffer)
    kept = kept_batches(run.recording) if run.recording is not None else {}
    if options.format == "json":
        print(json.dumps(to_dict(run, kept), indent=2, ensure_ascii=False))
    else:
        print_inspection(run, Console(), verbose=options.verbose, kept=kept)
    return 0
