"""`traindx skills`: the playbooks as a plugin for coding assistants."""

from __future__ import annotations

import argparse


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "skills",
        help="the playbooks as a plugin for coding assistants",
        description="The playbooks as skills for coding assistants.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    export = actions.add_parser(
        "export",
        help="write a plugin: skills with references, an agent, commands, the MCP server",
        description="Write a plugin for Claude Code into a folder, or with --plain the skills "
        "alone, for any assistant that reads SKILL.md folders.",
    )
    export.add_argument("folder", metavar="DIR", help="the folder to write to")
    export.add_argument(
        "--plain", action="store_true", help="the skills alone: a folder with SKILL.md for each"
    )
    export.add_argument(
        "--force", action="store_true", help="write even where the folder holds other files"
    )
    export.set_defaults(call=call)


def call(options: argparse.Namespace) -> int:
    """Write the plugin."""
    from pathlib import Path

    from traindx import api
    from traindx.specialists.plugin.export import write_files

    files = api.plugin_files(plain=options.plain)
    write_files(Path(options.folder), files, force=options.force)
    print(f"wrote {len(files)} files to {options.folder}")
    return 0
