"""Where evidence leads on the page: to a stretch of a curve, an excerpt, a setting or a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from traindx.model.findings import Evidence, Hypothesis
from traindx.model.run import Run
from traindx.report.drawn_curves import series_cited
from traindx.report.excerpts import Excerpt, Lines

EXCERPTS = 80
_LINE = re.compile(r"\blines?\s+(\d{1,9})(?:\s*(?:to|[-–])\s*(\d{1,9}))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quote:
    """An excerpt on the page: its anchor, where it is from, and the line that matters."""

    anchor: str
    artifact: str
    line: int
    end_line: int
    lines: Lines


@dataclass(frozen=True, slots=True)
class Target:
    """Where a piece of evidence leads."""

    series: str | None = None
    steps: tuple[float, float] | None = None
    excerpt: str | None = None
    anchor: str = "#chart"


def line_of(locator: str) -> tuple[int, int] | None:
    """Return the first and the last line that a locator names."""
    found = _LINE.search(locator)
    if found is None:
        return None
    start = int(found[1])
    return start, max(int(found[2] or start), start)


@dataclass(slots=True)
class Targets:
    """Finds where evidence leads, and keeps each excerpt once."""

    run: Run
    excerpt: Excerpt | None
    anchors: Mapping[str, str] = field(default_factory=dict)  # of evidence that is on the page
    quotes: dict[tuple[str, int], Quote | None] = field(default_factory=dict)

    def of(self, evidence: Evidence) -> Target:
        """Return where evidence leads, at the least to the file that it is from."""
        series = series_cited(self.run, evidence)
        place = line_of(evidence.locator)
        quote = self._quote(evidence.artifact, *place) if place else None
        anchor = quote.anchor if quote else self._anchor(evidence)
        return Target(
            series.name if series is not None else None,
            evidence.steps if series is not None else None,
            quote.anchor if quote else None,
            "#chart" if series is not None and not quote else f"#{anchor}",
        )

    def of_location(self, hypothesis: Hypothesis) -> Quote | None:
        """Return the excerpt of the source line that a cause points at."""
        place = hypothesis.location
        return self._quote(place.file, place.line, place.end_line) if place else None

    def _quote(self, artifact: str, line: int, end_line: int) -> Quote | None:
        key = (artifact, line)
        if key not in self.quotes:
            found = len([q for q in self.quotes.values() if q])
            wanted = self.excerpt is not None and found < EXCERPTS
            lines = self.excerpt(artifact, line) if self.excerpt and wanted else None
            made = Quote(f"excerpt-{found}", artifact, line, end_line, lines) if lines else None
            self.quotes[key] = made
        return self.quotes[key]

    def _anchor(self, evidence: Evidence) -> str:
        if evidence.artifact in self.anchors:
            return self.anchors[evidence.artifact]
        for i, setting in enumerate(self.run.config.settings):
            if setting.artifact == evidence.artifact and evidence.locator in (
                setting.locator,
                setting.key,
            ):
                return f"setting-{i}"
        for i, artifact in enumerate(self.run.artifacts):
            if artifact.path == evidence.artifact:
                return f"artifact-{i}"
        return "read"
