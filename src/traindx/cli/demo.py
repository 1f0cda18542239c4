"""`traindx demo`: a real broken run, diagnosed."""

from __future__ import annotations

import argparse
import os
import sys

from traindx.cli import options as shared

SHIPPED = ("train.log", "config.yaml")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "demo",
        help="diagnose a real broken run that is shipped with traindx",
        description="Diagnose the log and the configuration that a real broken training run left "
        "behind; they are shipped with traindx, with the program that made them.",
    )
    shared.add_diagnosing(parser)
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Diagnose the shipped run."""
    from importlib.resources import as_file, files

    from traindx import api

    with as_file(files("traindx.demo")) as folder:
        paths = [min(os.path.relpath(p), str(p), key=len) for p in map(folder.joinpath, SHIPPED)]
        print(f"$ traindx diagnose {' '.join(paths)}\n", file=sys.stderr)
        run = api.open_run(*paths, symptoms=options.symptom)
        diagnosis = api.diagnose(run, max_time_s=options.max_time)
        return shared.deliver(run, diagnosis, options)
