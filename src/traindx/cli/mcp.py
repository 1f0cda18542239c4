"""`traindx mcp`: the same capabilities for coding assistants, as an MCP server on stdio."""

from __future__ import annotations

import argparse
import sys

from traindx.errors import MissingExtra, UsageError


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "mcp",
        help="serve the same capabilities to coding assistants (Model Context Protocol)",
        description="Serve diagnosis, error explanation and inspection to coding assistants: a "
        "Model Context Protocol server on standard input and output. It reads nothing outside "
        "the folders that the client grants.",
    )
    parser.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="DIR",
        help="a folder to serve where the client grants none (may be repeated; default: the "
        "current folder)",
    )
    parser.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Serve until the client goes away."""
    from pathlib import Path

    roots = [Path(root) for root in options.root]
    for root in roots:
        if not root.is_dir():
            raise UsageError(f"{root}: it is no folder. Try: --root with a folder that exists")
    try:
        from traindx.agent.mcp_server import make_server
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in {"mcp", "mcp_types", "anyio", "pydantic"}:
            raise
        raise MissingExtra("the MCP server", "mcp") from None
    if sys.stdin.isatty():
        print("traindx: an assistant is to start this; it waits for MCP messages", file=sys.stderr)
    make_server(roots).run("stdio")
    if sys.stdout.closed:  # an older SDK closes what it wrote to, and the exit flushes it again
        sys.stdout = sys.stderr
    return 0
