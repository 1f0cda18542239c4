"""The probes on the page: a table of the changes, the floors, and what was left out."""

from __future__ import annotations

from traindx.model.probes import Effect, Probing
from traindx.report import probe_words, words
from traindx.report.markup import Markup, tag

_BADGE = {Effect.HELPS: "confirmed", Effect.HURTS: "refuted"}  # the colours of experiments


def probes(probing: Probing | None) -> Markup | str:
    """Return the section of all probes, or nothing where there were none."""
    if probing is None:
        return ""
    parts: list[Markup] = [tag("h2", {"id": "probes-title"}, "Probes")]
    if probing.probes:
        parts.append(_table(probing))
    floors = probe_words.floors_line(probing)
    if floors:
        parts.append(tag("p", {}, tag("b", {}, "Floors: "), floors))
    parts += [tag("p", {}, words.clean(remark, 400)) for remark in probing.remarks]
    if probing.left_out:
        left_out = probe_words.left_out_line(probing)
        summary = tag("summary", {}, f"{len(probing.left_out)} changes not tried")
        parts.append(tag("details", {}, summary, tag("p", {}, left_out)))
    return tag("section", {"id": "probes", "aria-labelledby": "probes-title"}, *parts)


def _table(probing: Probing) -> Markup:
    head = tag("tr", {}, *(tag("th", {"scope": "col"}, name) for name in probe_words.HEAD))
    rows = []
    for row in probe_words.rows_of(probing):
        badge = tag(
            "span", {"class": f"badge {_BADGE.get(row.effect, 'undecided')}"}, row.cells[-1]
        )
        cells = [tag("td", {}, cell) for cell in row.cells[:-1]]
        rows.append(tag("tr", {}, *cells, tag("td", {}, badge)))
    return tag("table", {}, tag("thead", {}, head), tag("tbody", {}, *rows))
