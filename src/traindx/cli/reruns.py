"""What the commands share that test a diagnosis by rerunning the user's command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from traindx.cli import options as shared
from traindx.cli.spoken import say
from traindx.errors import UsageError

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.api import VerifyRequest
    from traindx.experiments.verification.verification import Verification
    from traindx.model.findings import Diagnosis
    from traindx.model.run import Run

INTERRUPTED = 130


def request_of(options: argparse.Namespace) -> VerifyRequest:
    """Return what is to be tested, as the options say."""
    from traindx.api import VerifyRequest

    return VerifyRequest(
        tuple(options.cause),
        tuple(options.symptom),
        options.max_time,
        options.max_steps,
        options.seeds,
        options.output,
    )


def check_rerun(options: argparse.Namespace, usage: str) -> None:
    """Find out before any training, not after it, what makes no sense."""
    from traindx import api

    if not getattr(options, "command", ()):
        raise UsageError(f"no command to rerun. Try: {usage} -- python train.py")
    api.check_causes(options.cause)


def deliver_verified(
    run: Run | None, diagnosis: Diagnosis | None, options: argparse.Namespace
) -> int:
    """Verify a diagnosis with the command of the options, and report it."""
    verified = verify_with(options.command, run, diagnosis, options)
    code = shared.deliver(verified.run, verified.diagnosis, options)
    return INTERRUPTED if verified.is_interrupted else code


def verify_with(
    command: Sequence[str],
    run: Run | None,
    diagnosis: Diagnosis | None,
    options: argparse.Namespace,
) -> Verification:
    """Verify, with progress on a terminal and what cannot be ruled out said beforehand."""
    from traindx import api

    def remark(text: str) -> None:
        if not options.quiet:
            say(text)

    with shared.progress(options, "verifying:") as tell:
        verified = api.verify_run(
            command,
            run,
            diagnosis,
            request=request_of(options),
            tell=tell,
            warn=say,
            announce=remark,
        )
    if verified.recording is not None:
        remark(f"the first run on a copy is recorded in {verified.recording}")
    api.say_unfinished(verified, say, remark)
    return verified


def given_run(options: argparse.Namespace) -> Run:
    """Read the run that the options name."""
    from traindx import api

    with shared.progress(options) as tell:
        return api.open_run(
            *options.paths,
            context=options.context,
            symptoms=options.symptom,
            stdin=sys.stdin.buffer,
            tell=tell,
            max_time_s=options.max_time,
        )
