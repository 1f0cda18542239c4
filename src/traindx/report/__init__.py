"""Reports: a diagnosis rendered for a reader. They show what was judged and judge nothing.

Each format is a module with `render(run, diagnosis) -> str`; the terminal has `print_report`. None
is imported before it is used, so that asking for help costs neither rich nor matplotlib.
"""

from __future__ import annotations

import importlib

from traindx.errors import UnknownName
from traindx.model.findings import Diagnosis
from traindx.model.run import Run

FORMATS = ("json", "markdown", "html", "sarif")


def render(format_name: str, run: Run, diagnosis: Diagnosis) -> str:
    """Return a diagnosis as text in one of `FORMATS`."""
    if format_name not in FORMATS:
        raise UnknownName(f"no report format is called {format_name!r}. Try: {', '.join(FORMATS)}")
    if format_name == "html":
        return _page(run, diagnosis)
    text: str = importlib.import_module(f"{__name__}.{format_name}").render(run, diagnosis)
    return text


def _page(run: Run, diagnosis: Diagnosis) -> str:
    """Return the page with excerpts read from the artifacts that are still there."""
    from traindx.report.excerpts import excerpts_of
    from traindx.report.html import render as render_page

    return render_page(run, diagnosis, excerpts_of(run))
