"""`traindx verify`: test the causes of a diagnosis by rerunning the command with the remedy."""

from __future__ import annotations

import argparse
import sys

from traindx.cli import options as shared
from traindx.errors import UsageError

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.api import Verified
    from traindx.evidence import Diagnosis
    from traindx.model import Run

USAGE = "%(prog)s [OPTIONS] [RECORDING] -- COMMAND..."
INTERRUPTED = 130


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "verify",
        help="test a diagnosis by experiment: rerun the command with the remedy in place",
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
        "--context", metavar="FILE", help="a context package: artifacts by role, symptoms"
    )
    shared.add_verifying(parser)
    shared.add_diagnosing(parser)
    parser.set_defaults(call=call, command=())


def call(options: argparse.Namespace) -> int:
    """Diagnose what is given, or else a first run on a copy; then verify and report."""
    check_wishes(options)
    run = _given(options) if options.paths or options.context else None
    return deliver_verified(run, None, options)


def check_wishes(options: argparse.Namespace) -> None:
    """Find out before any training, not after it, what makes no sense."""
    if not getattr(options, "command", ()):
        wanted = " ".join(["traindx", *sys.argv[1:2], *(["RECORDING"] if options.paths else [])])
        flag = " --verify" if sys.argv[1:2] == ["diagnose"] else ""
        raise UsageError(f"no command to rerun. Try: {wanted}{flag} -- python train.py")
    check_causes(options)


def check_causes(options: argparse.Namespace) -> None:
    """Raise for a cause that nobody knows, and for a system that reruns need."""
    from traindx import api

    if sys.platform == "win32":
        raise UsageError("reruns on a copy need Linux or macOS")
    api.check_causes(options.cause)


def _given(options: argparse.Namespace) -> Run:
    import time

    from traindx import api

    with shared.progress(options) as tell:
        return api.open_run(
            *options.paths,
            context=options.context,
            symptoms=options.symptom,
            stdin=sys.stdin.buffer,
            tell=tell,
            deadline=time.monotonic() + options.max_time,
        )


def deliver_verified(
    run: Run | None, diagnosis: Diagnosis | None, options: argparse.Namespace
) -> int:
    """Verify a diagnosis with the command of the options, and report it."""
    verified = verify_with(options.command, run, diagnosis, options)
    code = shared.deliver(verified.run, verified.diagnosis, options)
    return INTERRUPTED if verified.is_interrupted else code


def say(text: str) -> None:
    """Say one line on standard error."""
    print(f"traindx: {text}", file=sys.stderr, flush=True)


def verify_with(
    command: tuple[str, ...],
    run: Run | None,
    diagnosis: Diagnosis | None,
    options: argparse.Namespace,
) -> Verified:
    """Verify, with progress on a terminal and what cannot be ruled out said beforehand."""
    from traindx import api

    wishes = api.Wishes(
        tuple(options.cause),
        tuple(options.symptom),
        options.max_time,
        options.max_steps,
        options.seeds,
        options.output,
    )
    with shared.progress(options, "verifying:") as tell:
        verified = api.verify_run(
            command,
            run,
            diagnosis,
            wishes=wishes,
            tell=tell,
            warn=lambda text: say(f"side effect not ruled out: {text}"),
        )
    if verified.recording is not None and not options.quiet:
        say(f"the first run on a copy is recorded in {verified.recording}")
    if verified.is_interrupted:
        say("interrupted; this is what is known")
    for left in verified.unfinished if not options.quiet else ():
        say(f"not tested: {left}")
    return verified
