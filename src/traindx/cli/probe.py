"""`traindx probe`: reruns with one change each, for runs that learn, only worse than they could."""

from __future__ import annotations

import argparse

from traindx.cli import options as shared
from traindx.cli import reruns
from traindx.cli.spoken import say
from traindx.errors import UsageError

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.experiments.probes.probing import ProbedRun
    from traindx.model.run import Run

USAGE = "%(prog)s [OPTIONS] [RECORDING] -- COMMAND..."
DESCRIPTION = """\
Rerun the command on copies, each time with one change (learning rate, regularisation, clipping,
batch size, initialisation, scaling, order, precision, modes, schedule, length), and say which
change helps beyond noise, what that says about the cause, and where the run stands among simple
baselines.
No hypothesis is needed; nothing of yours is changed."""
EXAMPLES = """examples:
  traindx probe -- python train.py
  traindx probe --max-time 900 --seeds 4 traindx-runs/20260101-120000-train -- python train.py
"""


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "probe",
        help="find the change that helps a run that learns, only worse than it could",
        usage=USAGE,
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="RECORDING",
        help="what `traindx run` wrote, or anything that `traindx diagnose` reads; by default the "
        "first rerun is diagnosed",
    )
    parser.add_argument(
        "--context", metavar="FILE", help="a context package (artifacts by role, symptoms)"
    )
    shared.add_rerun_bounds(parser)
    shared.add_diagnosing(parser)
    parser.set_defaults(call=call, command=())


def call(options: argparse.Namespace) -> int:
    """Probe, and report the diagnosis with the probes in it."""
    if not options.command:
        usage = f"traindx probe{' RECORDING' if options.paths else ''}"
        raise UsageError(f"no command to rerun. Try: {usage} -- python train.py")
    run = reruns.given_run(options) if options.paths or options.context else None
    found = _probed(run, options)
    code = shared.deliver(found.run, found.diagnosis, options)
    return reruns.INTERRUPTED if found.is_interrupted else code


def _probed(run: Run | None, options: argparse.Namespace) -> ProbedRun:
    from traindx import api

    def remark(text: str) -> None:
        if not options.quiet:
            say(text)

    with shared.progress(options, "probing:") as tell:
        found = api.probe_run(
            options.command,
            run,
            request=api.ProbeRequest(
                tuple(options.symptom),
                options.max_time,
                options.max_steps,
                options.seeds,
                options.output,
            ),
            tell=tell,
            warn=say,
            announce=remark,
        )
    if found.recording is not None:
        remark(f"the run as it is, on a copy, is recorded in {found.recording}")
    if found.is_interrupted:
        say("interrupted; this is what is known")
    return found
