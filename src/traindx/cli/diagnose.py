"""`traindx diagnose`: one run, from whatever it left behind."""

from __future__ import annotations

import argparse
import sys
import time

from traindx.cli import options as shared


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "diagnose",
        help="diagnose one run from whatever it left behind",
        description="Diagnose one run from whatever it left behind: logs, curves, tracebacks, "
        "source, config.",
    )
    shared.add_reading(parser)
    shared.add_diagnosing(parser)
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Read, diagnose, report."""
    started = time.monotonic()
    from dataclasses import replace

    from traindx import api

    with shared.progress(options) as tell:
        run = api.open_run(
            *options.paths,
            context=options.context,
            symptoms=options.symptom,
            stdin=sys.stdin.buffer,
            tell=tell,
            deadline=started + options.max_time,
        )
    remaining = options.max_time - (time.monotonic() - started)
    diagnosis = api.diagnose(run, max_time_s=remaining)
    diagnosis = replace(diagnosis, duration_s=time.monotonic() - started)
    return shared.deliver(run, diagnosis, options)
