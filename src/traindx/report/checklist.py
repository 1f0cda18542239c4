"""The checklist before a long job, for each reader: terminal, JSON, Markdown, HTML."""

from __future__ import annotations

import json

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from traindx.model.findings import Evidence
from traindx.model.preflight import Check, Checklist, Outcome
from traindx.report import words
from traindx.report.json import strict
from traindx.report.markup import Markup, join, tag
from traindx.report.terminal import show

MARKS = {Outcome.PASSED: "✓", Outcome.FAILED: "✗", Outcome.OPEN: "–"}
_STYLES = {Outcome.PASSED: "green", Outcome.FAILED: "bold red", Outcome.OPEN: "dim"}
_VERDICTS = {"ready": "bold green", "fix first": "bold red", "unknown": "bold yellow"}
EVIDENCE_SHOWN = 3
REDIRECTED_SHOWN = 5

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}
td{vertical-align:top;padding:.4rem .6rem;border-top:1px solid #8884}
.passed td:first-child{color:#1a7f37}.failed td:first-child{color:#c22}
.not_judged{opacity:.75}.evidence,footer{font-size:.85rem;opacity:.75}
h1{font-size:1.3rem}
"""


def print_checklist(checklist: Checklist, console: Console, *, verbose: bool = False) -> None:
    """Print the verdict, the checks and what to do about those that failed."""
    show(console, Text(words.clean(checklist.summary), _VERDICTS[checklist.verdict]))
    show(console, Text(""))
    table = Table.grid(padding=(0, 1))
    for _ in range(2):
        table.add_column()
    for check in checklist.checks:
        style = _STYLES[check.outcome]
        table.add_row(Text(MARKS[check.outcome], style), _described(check, verbose))
    show(console, Padding(table, (0, 0, 0, 2)))
    show(console, Text(""))
    for line in _closing(checklist):
        show(console, Text(line, "dim"))


def _described(check: Check, verbose: bool) -> Text:
    is_open = check.outcome is Outcome.OPEN
    text = Text(check.title, "" if not is_open else "dim")
    text.append(f": {'not judged: ' if is_open else ''}{words.clean(check.says, 400)}", "dim")
    if check.outcome is Outcome.FAILED:
        if check.causes:
            severity = f", {check.severity.value}" if check.severity else ""
            text.append(f"\n{', '.join(check.causes)}{severity}", "dim")
        for item in _cited(check, verbose):
            text.append(f"\n  {item}", "dim")
        if check.fix:
            text.append(f"\n→ {words.clean(check.fix, 400)}")
    elif verbose:
        for item in _cited(check, verbose):
            text.append(f"\n  {item}", "dim")
    return text


def _cited(check: Check, verbose: bool) -> list[str]:
    shown = check.evidence if verbose else check.evidence[:EVIDENCE_SHOWN]
    new = [e for e in shown if verbose or e.says not in check.says]
    return [_evidence(e) for e in new]


def _evidence(evidence: Evidence) -> str:
    return f"{words.clean(evidence.says, 300)} ({words.place(evidence)})"


def _closing(checklist: Checklist) -> list[str]:
    lines = [f"side effect that cannot be ruled out: {words.clean(w)}" for w in checklist.warnings]
    outside = checklist.redirected
    if outside:
        named = ", ".join(words.clean(path, 80) for path in outside[:REDIRECTED_SHOWN])
        more = f" and {len(outside) - REDIRECTED_SHOWN} more" if len(outside) > 5 else ""
        lines.append(f"kept in the copy, not written: {named}{more}")
    end = "interrupted after" if checklist.is_interrupted else "took"
    steps = words.counted(checklist.steps, "step")
    lines.append(f"{end} {checklist.duration_s:.0f} s, {steps} of the command on a copy")
    return lines


def render(format_name: str, checklist: Checklist) -> str:
    """Return the checklist as JSON, Markdown or HTML."""
    if format_name == "json":
        return json.dumps(strict(checklist.to_dict()), indent=2, allow_nan=False)
    return _page(checklist) if format_name == "html" else _markdown(checklist)


def _markdown(checklist: Checklist) -> str:
    lines = ["# Preflight", "", f"**{_plain(checklist.summary)}**", ""]
    for check in checklist.checks:
        said = "not judged: " if check.outcome is Outcome.OPEN else ""
        lines.append(f"- {MARKS[check.outcome]} **{check.title}**: {said}{_plain(check.says)}")
        if check.outcome is Outcome.FAILED:
            lines += [f"    - {_plain(item)}" for item in _cited(check, verbose=False)]
            lines += [f"    - fix: {_plain(check.fix)}"] if check.fix else []
    lines += ["", *(f"{_plain(line)}  " for line in _closing(checklist))]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Return text of others so that Markdown shows it as it is."""
    escaped = words.clean(text).replace("\\", "\\\\")
    for char in "`*_<>[]|#":
        escaped = escaped.replace(char, f"\\{char}")
    return escaped


def _page(checklist: Checklist) -> str:
    rows = [_row(check) for check in checklist.checks]
    body = join(
        tag("h1", {}, checklist.summary),
        tag("p", {}, tag("code", {}, " ".join(checklist.command))),
        tag("table", {}, *rows),
        tag("footer", {}, *(tag("p", {}, line) for line in _closing(checklist))),
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>Preflight</title><style>{_STYLE}</style>"
    )
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _row(check: Check) -> Markup:
    said = "not judged: " if check.outcome is Outcome.OPEN else ""
    told = [tag("div", {}, f"{said}{check.says}")]
    if check.outcome is Outcome.FAILED:
        told += [tag("div", {"class": "evidence"}, c) for c in _cited(check, verbose=False)]
        told += [tag("div", {}, f"→ {check.fix}")] if check.fix else []
    return tag(
        "tr",
        {"class": check.outcome.value},
        tag("td", {}, MARKS[check.outcome]),
        tag("td", {}, check.title),
        tag("td", {}, *told),
    )
