"""The diagnosis as one self-contained page: every piece of evidence leads to where it can be seen.

The page loads nothing and runs nothing but its own script, which its policy names by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from importlib.resources import files

from traindx.model.findings import Diagnosis
from traindx.model.run import Run
from traindx.report.excerpts import Excerpt, around
from traindx.report.page_data import charted, data_of, embedded
from traindx.report.page_probes import probes
from traindx.report.page_text import Page
from traindx.report.page_trials import anchors_of, experiments
from traindx.report.targets import Targets


def render(run: Run, diagnosis: Diagnosis, excerpt: Excerpt | None = None) -> str:
    """Return the page; `excerpt` quotes the lines around a place, by default of source files."""
    curves = charted(run)
    anchors = anchors_of(diagnosis.experiments)
    targets = Targets(run, excerpt or _source_excerpts(run), anchors)
    page = Page(run, diagnosis, curves, targets)
    style = _part("page.css")
    script = f"{_part('chart.js')}\n{_part('page.js')}"
    body = {
        "title": page.title(),
        "policy": _policy(style, script),
        "style": style,
        "script": script,
        "data": embedded(data_of(run, diagnosis, curves)),
        "status": diagnosis.status.value,
        "verdict": page.verdict(),
        "causes": page.causes(),
        "experiments": experiments(diagnosis.experiments),
        "probes": probes(diagnosis.probing),
        "doubts": page.doubts(),
        "coverage": page.coverage(),
        "material": page.material(),
        "chart": page.chart(),
        "excerpts": page.excerpts(),
        "duration": f"{diagnosis.duration_s:.1f}",
        "run": page.name(),
    }
    return _filled(_part("page.html"), body)


def _source_excerpts(run: Run) -> Excerpt:
    texts = {source.path: source.text for source in run.sources}
    return lambda artifact, line: (
        around(texts[artifact].split("\n"), line) if artifact in texts else None
    )


def _part(name: str) -> str:
    return files("traindx.report").joinpath("page").joinpath(name).read_text(encoding="utf-8")


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Fill a template in one pass, so that what is filled in is never itself a template."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def _policy(style: str, script: str) -> str:
    rules = (
        "default-src 'none'",
        f"script-src {_hash_of(script)}",
        f"style-src {_hash_of(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def _hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
