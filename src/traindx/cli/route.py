"""`traindx route`: which specialists a question needs, in which order, and why."""

from __future__ import annotations

import argparse
import sys

from traindx.cli import options as shared
from traindx.errors import UnreadableArtifact, UsageError

TYPE_CHECKING = False  # means what typing's own means, without the cost of importing it

if TYPE_CHECKING:
    from rich.console import Console

    from traindx.specialists.routing import Route


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "route",
        help="say which specialists a question in words needs, or ask back",
        description="Say which specialists a question in words needs, in which order and why; "
        "or ask one clarifying question; or say that it is not about training models.",
    )
    parser.add_argument(
        "question", nargs="*", metavar="QUESTION", help="in words; - reads it from standard input"
    )
    parser.add_argument("--file", metavar="FILE", help="read the question from a file")
    shared.add_format(parser, ("terminal", "json"))
    shared.add_loudness(parser)
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Read the question, route it, show the answer."""
    question = _question(options)
    if not question.strip():
        raise UsageError('route what? Try: traindx route "training is slow"')
    from traindx import api

    found = api.route(question)
    if options.format == "json":
        import json

        print(json.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    elif options.quiet:
        print(found.question or " > ".join(found.specialists) or found.why)
    else:
        from rich.console import Console

        _print(found, Console(highlight=False), is_verbose=options.verbose)
    return 0


def _question(options: argparse.Namespace) -> str:
    if options.file and options.question:
        raise UsageError("a question in words, or --file, not both")
    if options.file:
        return _file_text(options.file)
    if options.question == ["-"]:
        return sys.stdin.buffer.read().decode(errors="replace")
    return " ".join(options.question)


def _file_text(path: str) -> str:
    from pathlib import Path

    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        why = error.strerror or "cannot be read"
        raise UnreadableArtifact(path, why, "the path of a text file") from error


def _print(found: Route, console: Console, is_verbose: bool) -> None:
    from rich.markup import escape as escaped

    from traindx.report.words import clean

    def escape(text: str) -> str:
        return escaped(clean(text))

    for place, specialist in enumerate(found.specialists, start=1):
        console.print(f"[bold]{place}. {specialist}[/bold]")
    if found.question:
        console.print(f"[bold]{escape(found.question)}[/bold]")
    console.print(escape(found.why))
    for title, rows in (
        ("Overridden", found.overrides),
        ("Worth checking first (words alone show none of these)", found.candidates),
        ("First steps", found.first_steps),
        ("Wanted", found.artifacts_wanted),
    ):
        if rows:
            console.print(f"\n[bold]{title}[/bold]")
            for row in rows:
                console.print(f"- {escape(row)}")
    if found.specialists:
        console.print(f"\nThe playbook: traindx explain {found.specialists[0]}")
    if is_verbose and found.heard:
        console.print("\n[bold]Heard[/bold]")
        for heard in found.heard:
            denied = ", denied" if heard.is_denied else ""
            console.print(f"- {heard.concept} ({heard.kind}{denied}): {escape(heard.words)}")
