"""The entry point: finds the command, and turns every error into one line and an exit code.

Nothing heavy is imported here: `traindx --help` has to answer at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from traindx import __version__
from traindx.cli import (
    agent,
    check,
    demo,
    diagnose,
    explain,
    inspect,
    mcp,
    probe,
    route,
    run,
    scan,
    skills,
    verify,
)
from traindx.cli.spoken import say
from traindx.errors import TraindxError

COMMANDS = (
    diagnose,
    run,
    verify,
    probe,
    check,
    scan,
    inspect,
    explain,
    route,
    agent,
    mcp,
    skills,
    demo,
)
MISUSE = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = build_parser()
    given, command = _split(list(sys.argv[1:] if arguments is None else arguments))
    options = parser.parse_args(given)
    if command is not None:
        options.command = command
    try:
        code: int = options.call(options)
        sys.stdout.flush()
        return code
    except TraindxError as error:
        say(error)
        return MISUSE
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # the reader of our output went away, as `head` does; nothing is wrong
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _split(given: list[str]) -> tuple[list[str], tuple[str, ...] | None]:
    """Part the command to rerun from our own words, which argparse cannot tell from paths."""
    at = given.index("--") if "--" in given else len(given)
    own = given[:at]
    is_rerun = own[:1] in (["verify"], ["probe"]) or (own[:1] == ["diagnose"] and "--verify" in own)
    return (own, tuple(given[at + 1 :])) if is_rerun else (given, None)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="traindx",
        description="Say why a training run went wrong, show the evidence, and prove the fix.",
    )
    parser.add_argument("--version", action="version", version=f"traindx {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
