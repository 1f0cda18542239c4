"""`traindx diagnose`: one run, from whatever it left behind."""

from __future__ import annotations

import argparse
import sys

from traindx.cli import options as shared
from traindx.cli import reruns
from traindx.cli.spoken import say
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
    if options.verify:
        recording = " RECORDING" if options.paths else ""
        reruns.check_rerun(options, f"traindx diagnose{recording} --verify")
    from traindx import api

    with shared.progress(options) as tell:
        run, diagnosis = api.diagnose_run(
            *options.paths,
            context=options.context,
            symptoms=options.symptom,
            stdin=sys.stdin.buffer,
            tell=tell,
            max_time_s=options.max_time,
        )
    if options.verify:
        try:
            return reruns.deliver_verified(run, diagnosis, options)
        except CannotRerun as error:
            say(f"not verified: {error}")
    return shared.deliver(run, diagnosis, options)
