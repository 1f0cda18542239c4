"""The pages that follow from causes and detectors; none is written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from traindx.causes import Cause, Family, all_causes, families
from traindx.model.run import Run
from traindx.registry import Detector
from traindx.report import catalogue

_PACKAGE = "traindx.detectors."


def modes_page() -> str:
    """Return every way in which training fails: how bad it is, and what finds it."""
    parts = [
        "# Failure modes",
        f"The {len(all_causes())} causes by family. `traindx explain NAME` explains one in full.",
    ]
    for family in families():
        rows = [
            f"| `{c.name}` | {_cell(_title(c))} | {c.severity.value} | {_found_by(c)} "
            f"| `{c.specialist}` |"
            for c in family.causes
        ]
        head = [
            "| cause | what is wrong | severity | found by | specialist |",
            "|---|---|---|---|---|",
        ]
        parts += [f"## {_heading(family)}", "\n".join(head + rows)]
    return _page(parts)


def fixes_page() -> str:
    """Return the smallest change for each cause, the effect to expect and how to verify it."""
    parts = [
        "# Fix templates",
        "The first remedy of each cause. A diagnosis fills in the names and values of the run.",
    ]
    for family in families():
        parts.append(f"## {_heading(family)}")
        for cause in family.causes:
            remedy = cause.remedies_for(Run())[0]
            parts.append(
                f"### {cause.name}\n\n"
                f"- Change: {remedy.change}\n"
                f"- Expect: {remedy.expected_effect}\n"
                f"- Verify: {remedy.verify}\n"
                f"- If it fails: {remedy.if_it_fails}"
            )
    return _page(parts)


def causes_of_page(specialist: str) -> str | None:
    """Return all about the causes that a specialist treats, or None if there are none."""
    own = [c for c in all_causes().values() if c.specialist == specialist]
    if not own:
        return None
    parts = ["# Causes", _contents(c.name for c in own)]
    return _page([*parts, *(catalogue.explain_cause(c, level=2) for c in own)])


def detector_pages() -> dict[str, str]:
    """Return all about the detectors, a page for each family."""
    pages = {}
    for family, members in groupby(built_in(), key=lambda d: d.family):
        own = list(members)
        parts = [f"# Detectors: {family.replace('_', ' ')}", _contents(d.name for d in own)]
        parts += [catalogue.explain_detector(d, level=2) for d in own]
        pages[family.replace("_", "-")] = _page(parts)
    return pages


def causes_index() -> str:
    """Return every cause in a sentence."""
    rows = [f"- `{c.name}`: {_title(c)}" for c in all_causes().values()]
    return _page(["# Causes", "\n".join(sorted(rows))])


def detectors_index() -> str:
    """Return every detector in a sentence, with what it needs."""
    rows = [
        f"- `{d.name}` (needs {catalogue.needs_in_words(d) or 'nothing'}): {d.title}"
        for d in catalogue.all_detectors()
    ]
    return _page(["# Detectors", "\n".join(sorted(rows))])


def built_in() -> list[Detector]:
    """Return this project's detectors: what else is installed here need not be there elsewhere."""
    return [d for d in catalogue.all_detectors() if d.check.__module__.startswith(_PACKAGE)]


def _contents(names: Iterable[str]) -> str:
    return "\n".join(f"- [{name}](#{name})" for name in names)


def _title(cause: Cause) -> str:
    return cause.issue_in(Run())


def _found_by(cause: Cause) -> str:
    return catalogue.listed(d.name for d in built_in() if cause.name in d.suggests) or "no detector"


def _heading(family: Family) -> str:
    return family.name[:1].upper() + family.name[1:]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _page(parts: Sequence[str]) -> str:
    return "\n\n".join(part.strip() for part in parts) + "\n"
