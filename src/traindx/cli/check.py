"""`traindx check`: the training code alone, as a linter looks at it."""

from __future__ import annotations

import argparse

from traindx.cli import options as shared

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.model.findings import Diagnosis
    from traindx.model.run import Run


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "check",
        help="find the faults of training code before it runs",
        description="Find the faults of training code before it runs. It reads source only, and is "
        "fast enough for a pre-commit hook.",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a Python file, or a folder of them"
    )
    shared.add_diagnosing(parser)
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Read, check, report."""
    import gc

    from traindx import api

    gc.disable()  # millions of tree nodes stay to the end; looking through them again costs most

    run, diagnosis = api.check_run(*options.paths, max_time_s=options.max_time)
    return shared.deliver(run, diagnosis, options, _show)


def _show(run: Run, diagnosis: Diagnosis, options: argparse.Namespace) -> None:
    from traindx.report.lint import lines_of

    for line in lines_of(diagnosis, verbose=options.verbose):
        print(line)
