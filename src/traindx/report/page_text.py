"""The sections of the page, each as escaped markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from traindx.model.findings import Diagnosis, Evidence, Finding, Hypothesis, Remedy
from traindx.model.run import Run, Series
from traindx.report import words
from traindx.report.digest import digest
from traindx.report.drawn_curves import onset_of, thin, wants_log
from traindx.report.markup import Markup, join, lines, tag, text
from traindx.report.targets import Quote, Targets

SETTINGS = 300
SPARK_POINTS = 60


@dataclass(slots=True)
class Page:
    """A diagnosis as sections of a page; the curves' positions are their numbers in its data."""

    run: Run
    diagnosis: Diagnosis
    curves: Sequence[Series]
    targets: Targets

    def title(self) -> Markup:
        status = words.STATUS[self.diagnosis.status]
        return text(f"{status}: {words.clean(self.run.name, 80)} – traindx")

    def name(self) -> Markup:
        return text(words.clean(self.run.name, 80))

    def verdict(self) -> Markup:
        diagnosis = self.diagnosis
        facts = [
            (words.counted(len(diagnosis.root_causes), "root cause"), "#causes"),
            (words.counted(len(diagnosis.experiments), "experiment"), "#experiments"),
            (f"{len(diagnosis.checked)} checked", "#coverage"),
            (f"{len(diagnosis.skipped)} not checked", "#unchecked"),
            (words.counted(len(diagnosis.artifacts), "artifact"), "#read"),
        ]
        links = [
            tag("li", {}, tag("a", {"href": href}, said))
            for said, href in facts
            if not said.startswith("0 ")
        ]
        return join(
            tag("p", {"class": "status"}, words.STATUS[diagnosis.status]),
            tag("h1", {}, diagnosis.summary or words.STATUS[diagnosis.status]),
            tag("ul", {"class": "facts"}, *links),
        )

    # root causes

    def causes(self) -> Markup:
        found = self.diagnosis.root_causes
        return join(*(self._cause(h, i, len(found)) for i, h in enumerate(found)))

    def _cause(self, hypothesis: Hypothesis, index: int, of: int) -> Markup:
        rank = tag("span", {"class": "rank"}, index + 1) if of > 1 else None
        title = tag("h2", {"id": f"cause-{index}"}, rank, hypothesis.issue or hypothesis.cause)
        parts = [title, self._standing(hypothesis), *self._evidence(hypothesis, index)]
        if hypothesis.consequences:
            names = (hypothesis.cause, *hypothesis.consequences)
            steps = (tag("li", {}, tag("code", {}, words.clean(n, 80))) for n in names)
            parts += [tag("h3", {}, "Leads to"), tag("ol", {"class": "chain"}, *steps)]
        parts += [_remedy(remedy, i) for i, remedy in enumerate(hypothesis.remedies)]
        if words.band(hypothesis) == "fits" and hypothesis.confirm_by:
            parts.append(tag("p", {}, tag("b", {}, "To confirm: "), hypothesis.confirm_by))
        severity = hypothesis.severity.value
        return tag(
            "article", {"class": f"cause {severity}", "aria-labelledby": f"cause-{index}"}, *parts
        )

    def _standing(self, hypothesis: Hypothesis) -> Markup:
        severity = hypothesis.severity.value
        items = [
            tag("code", {}, words.clean(hypothesis.cause, 80)),
            tag("span", {"class": f"severity {severity}"}, severity),
            _confidence(hypothesis),
        ]
        onset = onset_of(self.run, hypothesis)
        if onset is not None:
            items.append(tag("span", {}, f"since {onset.text}"))
        if hypothesis.location is not None:
            place = f"{words.clean(hypothesis.location.file, 80)}:{hypothesis.location.line}"
            quote = self.targets.of_location(hypothesis)
            link = {"href": f"#{quote.anchor}", "class": "place"} if quote else {}
            items.append(tag("a" if quote else "span", link, place))
        return tag("ul", {"class": "standing"}, *(tag("li", {}, item) for item in items))

    def _evidence(self, hypothesis: Hypothesis, index: int) -> list[Markup]:
        parts = [
            tag("h3", {}, "Evidence"),
            self._facts(hypothesis.evidence, f"evidence-{index}"),
        ]
        if hypothesis.counter_evidence:
            parts.append(tag("h3", {}, "Against it"))
            parts.append(self._facts(hypothesis.counter_evidence, f"against-{index}"))
        return parts

    def _facts(self, evidence: Iterable[Evidence], prefix: str) -> Markup:
        items = [
            tag("li", {}, self._fact(item, f"{prefix}-{i}")) for i, item in enumerate(evidence)
        ]
        return tag("ul", {"class": "evidence-list"}, *items)

    def _fact(self, item: Evidence, anchor: str) -> Markup:
        target = self.targets.of(item)
        number = next((i for i, c in enumerate(self.curves) if c.name == target.series), None)
        has_curve = number is not None and target.steps is not None
        steps = target.steps if target.steps and has_curve else (None, None)
        attributes = {
            "class": "evidence",
            "id": anchor,
            "href": target.anchor,
            "data-series": number if has_curve else None,
            "data-from": _exact(steps[0]),
            "data-to": _exact(steps[1]),
            "data-excerpt": target.excerpt,
        }
        kinds = [
            *(["curve"] if has_curve else []),
            *(["lines"] if target.excerpt else []),
            *(["experiment"] if item.artifact in self.targets.anchors else []),
        ]
        marks = (tag("span", {"class": f"kind {kind}"}, kind) for kind in kinds or ["file"])
        return tag(
            "a",
            attributes,
            tag("span", {"class": "says"}, words.clean(item.says, 600)),
            tag("span", {"class": "place"}, words.place(item), " ", *marks),
        )

    # what stays open

    def doubts(self) -> Markup:
        diagnosis = self.diagnosis
        parts = []
        open_ones = words.open_hypotheses(diagnosis)
        if open_ones:
            parts.append(_section("open", "Open hypotheses", _open_table(open_ones)))
        questions = words.questions(diagnosis)
        if questions:
            items = (tag("li", {}, q) for q in questions)
            parts.append(_section("questions", "Questions", tag("ul", {}, *items)))
        if diagnosis.remarks:
            items = (self._remark(f, i) for i, f in enumerate(diagnosis.remarks))
            parts.append(_section("remarks", "Also seen", *items))
        return join(*parts)

    def _remark(self, finding: Finding, index: int) -> Markup:
        claim = tag("p", {"class": "claim"}, finding.claim)
        return join(claim, self._facts(finding.evidence, f"remark-{index}"))

    # what was checked

    def coverage(self) -> Markup:
        diagnosis = self.diagnosis
        names = (tag("li", {}, tag("code", {}, words.clean(n, 80))) for n in diagnosis.checked)
        title = f"Checked: {words.counted(len(diagnosis.checked), 'detector')}"
        parts = [_folded("coverage", title, tag("ul", {"class": "names"}, *names))]
        if diagnosis.skipped:
            title = f"Not checked: {len(diagnosis.skipped)}"
            parts.append(_folded("unchecked", title, self._gaps()))
        reasons = words.reasons(diagnosis.skipped)
        if reasons:
            items = (tag("li", {}, reason) for reason in reasons)
            parts.append(_section("reasons", "Why some was not checked", tag("ul", {}, *items)))
        if diagnosis.failed:
            failed = (
                tag("li", {}, tag("code", {}, words.clean(f.detector, 80)), ": ", f.error)
                for f in diagnosis.failed
            )
            title = "Crashed (says nothing about the run)"
            parts.append(_section("crashed", title, tag("ul", {}, *failed)))
        return join(*parts)

    def _gaps(self) -> Markup:
        rows = [
            (tag("code", {}, gap.missing or "–"), gap.how, "; ".join(gap.detectors))
            for gap in words.gaps(self.diagnosis.skipped)
        ]
        return _table(("missing", "how to get it", "checks that need it"), rows)

    def material(self) -> Markup:
        parts = [self._metrics()] if self.curves else []
        if self.run.config.settings:
            parts.append(self._settings())
        return join(*parts, self._artifacts())

    def _metrics(self) -> Markup:
        rows = []
        for i, series in enumerate(self.curves):
            name = words.clean(series.name, 80)
            figures = digest(series)
            rows.append(
                (
                    tag("a", {"href": "#chart", "class": "metric", "data-series": i}, name),
                    _spark(series),
                    words.number(figures.last),
                    f"{words.number(figures.least)} at {words.step(figures.least_at)}",
                    f"{words.number(figures.most)} at {words.step(figures.most_at)}",
                    str(figures.points),
                )
            )
        head = ("metric", "shape", "last", "min", "max", "points")
        return _folded("metrics", f"Metrics: {len(self.run.series)}", _table(head, rows))

    def _settings(self) -> Markup:
        rows = []
        for i, setting in enumerate(self.run.config.settings[:SETTINGS]):
            key = tag("code", {"id": f"setting-{i}"}, words.clean(setting.key, 120))
            place = f"{words.clean(setting.artifact, 80)}: {words.clean(setting.locator, 80)}"
            rows.append((key, words.clean(setting.value, 200), place))
        title = f"Settings: {len(self.run.config.settings)}"
        return _folded("settings", title, _table(("key", "value", "set in"), rows))

    def _artifacts(self) -> Markup:
        items = []
        for i, artifact in enumerate(self.run.artifacts):
            warned = (tag("p", {"class": "warning"}, f"warning: {w}") for w in artifact.warnings)
            path = tag("code", {"id": f"artifact-{i}"}, words.clean(artifact.path, 300))
            items.append(tag("li", {}, path, " ", artifact.reader, *warned))
        return _folded("read", f"Artifacts read: {len(items)}", tag("ul", {}, *items))

    # the side that shows

    def chart(self) -> Markup | str:
        if not self.curves:
            return tag("p", {"class": "empty"}, "No metrics were found, so there is no curve.")
        return ""

    def excerpts(self) -> Markup:
        return join(*(_excerpt(quote) for quote in self.targets.quotes.values() if quote))


def _exact(value: float | None) -> str | None:
    return None if value is None else words.step(value) if value == int(value) else repr(value)


def _confidence(hypothesis: Hypothesis) -> Markup:
    value = min(max(hypothesis.confidence, 0.0), 1.0)
    label = f"confidence {hypothesis.confidence:.2f}"
    meter = tag("meter", {"min": 0, "max": 1, "value": f"{value:.3f}", "aria-label": label})
    return tag("span", {"class": "confidence"}, meter, " ", words.confidence(hypothesis))


def _remedy(remedy: Remedy, index: int) -> Markup:
    label = "Fix" if index == 0 else "Or"
    rows = [
        (name, said)
        for name, said in (
            ("Expect", remedy.expected_effect),
            ("Verify", remedy.verify),
            ("If it fails", remedy.if_it_fails),
        )
        if said
    ]
    pairs = [part for name, said in rows for part in (tag("dt", {}, name), tag("dd", {}, said))]
    title = tag("h3", {}, tag("span", {"class": "label"}, label), " ", remedy.change)
    patch = _patch(remedy.patch) if remedy.patch else None
    return tag("section", {"class": "remedy"}, title, patch, tag("dl", {}, *pairs))


def _patch(patch: str) -> Markup:
    parts = (
        tag("span", {"class": f"diff {kind}"}, Markup(lines(line) or " "))
        for kind, line in words.parts_of_diff(patch)
    )
    return tag("pre", {"class": "patch", "tabindex": "0", "aria-label": "patch"}, *parts)


def _section(anchor: str, title: str, *body: object) -> Markup:
    heading = tag("h2", {"id": f"{anchor}-title"}, title)
    return tag("section", {"id": anchor, "aria-labelledby": f"{anchor}-title"}, heading, *body)


def _folded(anchor: str, title: str, *body: object) -> Markup:
    summary = tag("summary", {}, tag("h2", {}, title))
    return tag("details", {"id": anchor, "class": "material"}, summary, *body)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    top = tag("tr", {}, *(tag("th", {"scope": "col"}, name) for name in head))
    body = [tag("tr", {}, *(tag("td", {}, cell) for cell in row)) for row in rows]
    inner = tag("table", {}, tag("thead", {}, top), tag("tbody", {}, *body))
    return tag("div", {"class": "scroll", "tabindex": "0"}, inner)


def _open_table(hypotheses: Sequence[Hypothesis]) -> Markup:
    rows = []
    for hypothesis in hypotheses:
        name = tag("code", {}, words.clean(hypothesis.cause, 80))
        cause = join(name, tag("br", {}), hypothesis.issue)
        rows.append((f"{hypothesis.confidence:.2f}", cause, hypothesis.confirm_by))
    return _table(("confidence", "cause", "would decide"), rows)


def _spark(series: Series) -> Markup:
    shown = thin(series, SPARK_POINTS)
    values = shown.values[shown.is_finite]
    if not len(values):
        return text("–")
    if wants_log([shown]):
        values = np.log10(np.maximum(values, values[values > 0].min()))
    # halves, because the difference of two huge numbers is no number
    low, high = float(values.min()) / 2, float(values.max()) / 2
    heights = (values / 2 - low) / (high - low) if high > low else np.full(len(values), 0.5)
    across = np.linspace(0, 96, len(values)) if len(values) > 1 else np.array([48.0])
    points = " ".join(
        f"{2 + x:.1f},{22 - 20 * y:.1f}" for x, y in zip(across, heights, strict=True)
    )
    line = tag("polyline", {"points": points, "fill": "none"})
    return tag("svg", {"class": "spark", "viewBox": "0 0 100 24", "aria-hidden": "true"}, line)


def _excerpt(quote: Quote) -> Markup:
    parts = []
    for number, line in quote.lines:
        is_cited = quote.line <= number <= quote.end_line
        numbered = tag("span", {"class": "number"}, number)
        said = tag("span", {"class": "said"}, Markup(lines(line) or " "))
        parts.append(tag("span", {"class": "line cited" if is_cited else "line"}, numbered, said))
    to = f" to {quote.end_line}" if quote.end_line > quote.line else ""
    where = f"{words.clean(quote.artifact, 120)}, line {quote.line}{to}"
    return tag(
        "figure",
        {"class": "excerpt", "id": quote.anchor},
        tag("figcaption", {}, where),
        tag("pre", {"tabindex": "0", "aria-label": where}, *parts),
    )
