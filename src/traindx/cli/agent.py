"""`traindx agent`: the language-model specialist over the same evidence, its quotes checked."""

from __future__ import annotations

import argparse
import io
import sys

from traindx.cli import options as shared
from traindx.cli.spoken import say
from traindx.errors import UsageError

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from traindx.agent.specialist import Consultation
    from traindx.model.findings import Diagnosis
    from traindx.model.run import Run

DEFAULT_MAX_TURNS = 20


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "agent",
        help="ask a language-model specialist, and check every quote of its answer",
        description="Diagnose one run as `diagnose` does, then ask a language-model specialist "
        "about it. It can only look at what was read; each piece of evidence that it cites is "
        "looked up, and what is not found is struck out. What it looks at is sent to the service "
        "that ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL name.",
    )
    shared.add_reading(parser)
    shared.add_diagnosing(parser)
    parser.add_argument("--model", metavar="NAME", help="the model to ask (default: the SDK's)")
    parser.add_argument(
        "--max-turns",
        type=int,
        default=DEFAULT_MAX_TURNS,
        metavar="N",
        help="at most N answers and tool calls together (default: %(default)s)",
    )
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Read, diagnose, consult, report."""
    if options.max_turns < 1:
        raise UsageError("--max-turns has to be at least 1")
    from dataclasses import replace

    from traindx import api
    from traindx.agent.account import cost_line
    from traindx.agent.specialist import consult
    from traindx.readers.deadline import Deadline

    limit = Deadline.after(options.max_time)
    given = sys.stdin.buffer.read() if "-" in options.paths else b""
    with shared.progress(options) as tell:
        run, engine = api.diagnose_run(
            *options.paths,
            context=options.context,
            symptoms=options.symptom,
            stdin=io.BytesIO(given),
            tell=tell,
            max_time_s=options.max_time,
        )
        consultation = consult(
            run,
            engine,
            texts=_texts(given),
            model=options.model,
            max_turns=options.max_turns,
            max_time_s=limit.left_s,
            tell=tell,
        )
    diagnosis = replace(consultation.diagnosis, duration_s=limit.spent_s)
    code = _deliver(run, diagnosis, consultation, options)
    if consultation.note:
        say(consultation.note)
    if consultation.spent.turns:
        say(cost_line(consultation))
    return code


def _texts(given: bytes) -> dict[str, str]:
    """Return what came on standard input under the name that it has in the run."""
    from traindx.readers.opening import STDIN
    from traindx.readers.text import decode

    return {STDIN: decode(given)} if given else {}


def _deliver(
    run: Run, diagnosis: Diagnosis, consultation: Consultation, options: argparse.Namespace
) -> int:
    from traindx.agent import account

    def render(format_name: str, run: Run, diagnosis: Diagnosis) -> str:
        return account.render(format_name, run, diagnosis, consultation)

    def show(run: Run, diagnosis: Diagnosis, options: argparse.Namespace) -> None:
        from rich.console import Console

        from traindx.report.terminal import print_report

        console = Console()
        print_report(run, diagnosis, console, verbose=options.verbose)
        account.print_account(consultation, console)

    code = shared.deliver(run, diagnosis, options, show, render)
    if options.output:
        account.add_to_folder(options.output, consultation)
    return code
