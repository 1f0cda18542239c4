"""How a diagnosis shows itself in a notebook: the verdict at once, the whole report on demand.

`Diagnosis` knows nothing of reports, so the display is given to it from here, when the library is
put together. Nothing of a report is imported before a notebook asks for it.
"""

from __future__ import annotations

import sys
from collections import deque
from html import escape
from typing import Any

from traindx.model.findings import Diagnosis, Hypothesis
from traindx.model.run import Run

REMEMBERED = 8  # runs kept for their curves; an older diagnosis shows itself without them
EVIDENCE_SHOWN = 6
WIDTH = 100
_NOTEBOOKS = ("IPython", "marimo")
_HEIGHT = "height:36em;width:100%;border:1px solid #8888"

_runs: deque[tuple[Diagnosis, Run]] = deque(maxlen=REMEMBERED)


class MarkdownText(str):
    """Text that a notebook renders as Markdown, and that is a plain string elsewhere."""

    __slots__ = ()

    def _repr_markdown_(self) -> str:
        return str(self)


def _enable() -> None:
    """Let every diagnosis show itself in a notebook."""
    Diagnosis._repr_mimebundle_ = _bundle  # type: ignore[attr-defined]


def remember(diagnosis: Diagnosis, run: Run) -> Diagnosis:
    """Let a diagnosis show itself, and keep its run for that, in a notebook and nowhere else."""
    _enable()
    if any(name in sys.modules for name in _NOTEBOOKS):
        _runs.append((diagnosis, run))
    return diagnosis


def _bundle(diagnosis: Diagnosis, include: object = None, exclude: object = None) -> dict[str, str]:
    from traindx.report import markdown

    run = _run_of(diagnosis)
    return {
        "text/plain": _plainly(run, diagnosis),
        "text/markdown": markdown.render(run, diagnosis),
        "text/html": as_html(run, diagnosis),
    }


def _run_of(diagnosis: Diagnosis) -> Run:
    found = (run for known, run in _runs if known is diagnosis)
    return next(found, Run(artifacts=diagnosis.artifacts))


def _plainly(run: Run, diagnosis: Diagnosis) -> str:
    from io import StringIO

    from rich.console import Console

    from traindx.report.terminal import print_report

    console = Console(file=StringIO(), width=WIDTH, color_system=None, force_jupyter=False)
    with console.capture() as captured:
        print_report(run, diagnosis, console)
    return captured.get().rstrip()


def as_html(run: Run, diagnosis: Diagnosis) -> str:
    """Return the verdict and the causes as a fragment, with the whole report folded below.

    The fragment has no script and no style sheet, so it outlives a viewer that strips them.
    """
    from traindx import report
    from traindx.report.markup import Markup, tag
    from traindx.report.words import STATUS, clean

    head = tag("b", {}, STATUS[diagnosis.status])
    parts = [
        tag("p", {}, head, f" · {clean(run.name, 80)}"),
        tag("p", {}, diagnosis.summary),
        *(_cause(hypothesis) for hypothesis in diagnosis.root_causes),
    ]
    if diagnosis.questions:
        asked = (tag("li", {}, question) for question in diagnosis.questions)
        parts += [tag("p", {}, "What would decide:"), tag("ul", {}, *asked)]
    page = escape(report.render("html", run, diagnosis), quote=True)
    frame = Markup(f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="{_HEIGHT}"></iframe>')
    parts.append(tag("details", {}, tag("summary", {}, "The whole report"), frame))
    return str(tag("div", {}, *parts))


def _cause(hypothesis: Hypothesis) -> Any:
    from traindx.report.markup import Markup, lines, tag
    from traindx.report.words import clean, confidence, place

    standing = f" · {hypothesis.severity.value} · {confidence(hypothesis)}"
    if hypothesis.location is not None:
        standing += f" · {clean(hypothesis.location.file, 80)}:{hypothesis.location.line}"
    shown = hypothesis.evidence[:EVIDENCE_SHOWN]
    facts = (tag("li", {}, f"{item.says} ", tag("code", {}, place(item))) for item in shown)
    parts = [
        tag("h4", {}, hypothesis.issue or hypothesis.cause),
        tag("p", {}, tag("code", {}, hypothesis.cause), standing),
        tag("ul", {}, *facts),
    ]
    for remedy in hypothesis.remedies[:1]:
        parts.append(tag("p", {}, tag("b", {}, "Fix: "), remedy.change))
        if remedy.patch:
            parts.append(tag("pre", {}, lines(remedy.patch)))
    return Markup("".join(parts))
