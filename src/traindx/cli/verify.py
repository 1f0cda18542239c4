"""`traindx verify`: test the causes of a diagnosis by rerunning the command with the remedy."""

from __future__ import annotations

import argparse

from traindx.cli import options as shared
from traindx.cli import reruns

USAGE = "%(prog)s [OPTIONS] [RECORDING] -- COMMAND..."


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "verify",
        help="test a diagnosis by rerunning the command with the remedy in place",
        usage=USAGE,
        description="Test the causes of a diagnosis: rerun the command on a copy, once as it is "
        "and once with one change, and compare. Nothing of yours is changed. Without a RECORDING "
        "the command is first run on a copy and diagnosed.",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="RECORDING",
        help="what `traindx run` wrote, or anything that `traindx diagnose` reads",
    )
    parser.add_argument(
        "--context", metavar="FILE", help="a context package (artifacts by role, symptoms)"
    )
    shared.add_verifying(parser)
    shared.add_diagnosing(parser)
    parser.set_defaults(call=call, command=())


def call(options: argparse.Namespace) -> int:
    """Diagnose what is given, or else a first run on a copy; then verify and report."""
    reruns.check_rerun(options, f"traindx verify{' RECORDING' if options.paths else ''}")
    run = reruns.given_run(options) if options.paths or options.context else None
    return reruns.deliver_verified(run, None, options)
