"""`traindx explain`: what a detector or a cause is, or what an error text means."""

from __future__ import annotations

import argparse
import sys

from traindx.cli import options as shared
from traindx.errors import UnknownName, UsageError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "explain",
        help="explain a detector, a cause or an error message",
        description="Say what a detector or a cause is; with -, explain the error text on "
        "standard input.",
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a detector, a cause, or -")
    parser.add_argument("--list", action="store_true", help="list every name there is")
    shared.add_diagnosing(parser)
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Explain a name or an error."""
    from traindx import api
    from traindx.report import catalogue

    if options.list:
        print("\n".join(catalogue.all_names()))
        return 0
    if options.name is None:
        raise UsageError(
            "explain what? Try: traindx explain lr-too-high, or traindx explain --list"
        )
    if options.name == "-":
        return _explain_error(options)
    try:
        text = api.explain_name(options.name)
    except UnknownName as error:
        near = api.suggest_names(options.name)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise UnknownName(f"{error}{hint}") from None
    _show(text)
    return 0


def _explain_error(options: argparse.Namespace) -> int:
    from traindx import api

    run, diagnosis = api.diagnose_run(
        "-", stdin=sys.stdin.buffer, symptoms=options.symptom, max_time_s=options.max_time
    )
    return shared.deliver(run, diagnosis, options)


def _show(markdown: str) -> None:
    """Render Markdown on a terminal; leave it as it is in a pipe."""
    if not sys.stdout.isatty():
        print(markdown)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(markdown))
