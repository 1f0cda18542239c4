"""A scan of many runs on a terminal: the worst first, then what they have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from traindx.report.words import clean, counted

HEALTHY_SHOWN = 5
_MARK = {
    "diagnosis_complete": ("✗", "bold red"),
    "partial_diagnosis": ("✗", "red"),
    "insufficient_evidence": ("?", "yellow"),
    "no_problem_found": ("✓", "green"),
}


def print_scan(scan: Mapping[str, Any], console: Console, *, verbose: bool = False) -> None:
    """Print what `Scan.to_dict` holds."""
    runs: Sequence[Mapping[str, Any]] = scan["runs"]
    healthy = [r for r in runs if r["status"] == "no_problem_found"]
    ill = [r for r in runs if r["causes"]]
    head = f"{counted(len(runs), 'run')}: {len(ill)} with a cause, {len(healthy)} healthy"
    console.print(Text(head, style="bold"))
    console.print()
    troubled = [r for r in runs if r not in healthy]
    shown = [*troubled, *(healthy if verbose else healthy[:HEALTHY_SHOWN])]
    console.print(_table(shown))
    if len(shown) < len(runs):
        console.print(Text(f"  and {len(runs) - len(shown)} healthy more (--verbose)", style="dim"))
    _print_causes(scan["by_cause"], console)
    for remark in scan["remarks"]:
        console.print(Text(f"• {clean(remark)}"))
    if scan["unread"]:
        console.print(Text(f"Not reached: {counted(len(scan['unread']), 'run')}", style="yellow"))


def _table(runs: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    shared = _shared_folder([run["path"] for run in runs])
    table.add_column("")
    table.add_column("run", overflow="fold")
    table.add_column("cause", overflow="fold")
    table.add_column("sure", justify="right")
    table.add_column("severity")
    for run in runs:
        mark, style = _MARK.get(run["status"], ("!", "magenta"))
        first = run["causes"][0] if run["causes"] else None
        more = len(run["causes"]) - 1
        cause = clean(run["status"].replace("_", " ") if first is None else first["cause"])
        table.add_row(
            Text(mark, style=style),
            Text(clean(run["path"][len(shared) :])),
            Text(f"{cause} +{more}" if more > 0 else cause),
            Text("" if first is None else f"{first['confidence']:.2f}"),
            Text(run["severity"] or ""),
        )
    return table


def _shared_folder(paths: Sequence[str]) -> str:
    """The part that all paths begin with, up to a separator: it says nothing in a table."""
    if len(paths) < 2:
        return ""
    first, last = min(paths), max(paths)  # what these two share, all between them share
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    return first[: first.rfind(os.sep, 0, same) + 1]


def _print_causes(groups: Mapping[str, Sequence[str]], console: Console) -> None:
    if not groups:
        return
    console.print()
    console.print(Text("By cause", style="bold"))
    for cause, paths in groups.items():
        console.print(Text(f"  {len(paths):4}  {clean(cause)}"))
