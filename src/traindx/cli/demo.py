"""`traindx demo`: a small real run that breaks, diagnosed, and the fix proven."""

from __future__ import annotations

import argparse
import os
import sys

from traindx.cli import options as shared
from traindx.cli import reruns

SHIPPED = ("train.log", "config.yaml")
PROGRAM = "strokes.py"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "demo",
        help="break a small real training run, ride along, diagnose it, prove the fix",
        description="Run a small training program with one line missing, ride along, diagnose it, "
        "and prove the fix by experiment. Without torch, with --log or in another format than the "
        "terminal's, diagnose the log that an earlier broken run left behind.",
    )
    parser.add_argument(
        "--log", action="store_true", help="diagnose a shipped log instead; nothing is run"
    )
    shared.add_diagnosing(parser)
    parser.set_defaults(call=call, cause=[], max_steps=None, seeds=2)


def call(options: argparse.Namespace) -> int:
    """Show the whole way on a real run, or diagnose the shipped log."""
    if options.log or options.format != "terminal" or sys.platform == "win32":
        return _diagnose_log(options)
    from importlib.util import find_spec

    if find_spec("torch") is not None:
        return _live(options)
    code = _diagnose_log(options)
    more = "with torch installed, traindx demo breaks a real run, rides along and proves the fix"
    print(f"traindx: {more}. Try: pip install torch", file=sys.stderr)
    return code


def _diagnose_log(options: argparse.Namespace) -> int:
    from importlib.resources import as_file, files

    from traindx import api

    with as_file(files("traindx.demo")) as folder:
        paths = [min(os.path.relpath(p), str(p), key=len) for p in map(folder.joinpath, SHIPPED)]
        print(f"$ traindx diagnose {' '.join(paths)}\n", file=sys.stderr)
        run, diagnosis = api.diagnose_run(
            *paths, symptoms=options.symptom, max_time_s=options.max_time
        )
        return shared.deliver(run, diagnosis, options)


def _live(options: argparse.Namespace) -> int:
    """Work in a folder of our own, as if it were a project of the user's."""
    from importlib.resources import files
    from pathlib import Path
    from tempfile import TemporaryDirectory

    if options.output:
        options.output = str(Path(options.output).absolute())
    here = Path.cwd()
    with TemporaryDirectory(prefix="traindx-demo-") as folder:
        source = files("traindx.demo").joinpath(PROGRAM).read_text(encoding="utf-8")
        Path(folder, PROGRAM).write_text(source, encoding="utf-8")
        os.chdir(folder)
        try:
            return _ride_and_prove(options)
        finally:
            os.chdir(here)


def _ride_and_prove(options: argparse.Namespace) -> int:
    from traindx import api

    if not options.quiet:
        print(f"$ traindx run --verify -- python {PROGRAM}\n", file=sys.stderr)
    result = api.run(
        (sys.executable, PROGRAM),
        output="recording",
        symptoms=options.symptom,
        max_time_s=options.max_time,
        verification=reruns.request_of(options),
        surface=api.Surface(options.quiet, lambda doing: shared.progress(options, doing)),
    )
    if result.run is None or result.diagnosis is None:
        return 1
    print(flush=True)
    return shared.deliver(result.run, result.diagnosis, options)
