"""`traindx diagnose`: one run, from whatever it left behind."""

from __future__ import annotations

import argparse
import sys
import time

from traindx.cli import options as shared
from traindx.errors import CannotRerun


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "diagnose",
        help="diagnose one run from whatever it left behind",
        description="Diagnose one run from whatever it left behind: logs, curves, tracebacks, "
        "source, config. With --verify and -- COMMAND, the causes are tested by experiment.",
    )
    shared.add_reading(parser)
    shared.add_diagnosing(parser)
    shared.add_verify(parser, "the COMMAND after --")
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Read, diagnose, verify where asked, report."""
    started = time.monotonic()
    if options.verify:
        from traindx.cli.verify import check_wishes

        check_wishes(options)
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
    if options.verify:
        from traindx.cli.verify import deliver_verified, say

        try:
            return deliver_verified(run, diagnosis, options)
        except CannotRerun as error:
            say(f"not verified: {error}")
    return shared.deliver(run, diagnosis, options)
