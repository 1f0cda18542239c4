"""What each cause and each detector is, in Markdown: for `traindx explain` and for the docs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from inspect import cleandoc

from traindx.causes import Cause, all_causes
from traindx.errors import UnknownName
from traindx.model.former_names import former_name
from traindx.model.needs import need_of
from traindx.model.run import Run
from traindx.registry import Detector, detector_named, detectors

SUGGESTIONS = 3
ALIKE = 0.6  # difflib's own default: one typo in a short name, two or three in a long one

_HEADING = re.compile(r"^#+(?= )", re.MULTILINE)


def all_names() -> list[str]:
    """Return the name of every cause and every detector, in order."""
    return sorted({*all_causes(), *(d.name for d in all_detectors())})


def all_detectors() -> list[Detector]:
    """Return every detector, by family and name."""
    found: Iterable[Detector] = detectors().items
    return sorted(found, key=lambda d: (d.family, d.name))


def explain_name(name: str) -> str:
    """Return what a cause or a detector is, cause first."""
    wanted = spelt(name)
    cause = all_causes().get(wanted)
    parts = [] if cause is None else [explain_cause(cause)]
    detector = detector_named(wanted)
    parts += [] if detector is None else [explain_detector(detector)]
    if not parts:
        raise UnknownName(f"nothing is called {name!r}. Try: traindx explain --list.")
    return "\n\n".join(parts)


def suggest_names(wrong: str, others: Iterable[str] = ()) -> list[str]:
    """Return the names that were probably meant, best first, also among others than our own."""
    wanted, names = spelt(wrong), [*all_names(), *others]
    close = get_close_matches(wanted, names, n=SUGGESTIONS, cutoff=ALIKE)
    containing = [n for n in names if wanted and wanted in n and n not in close]
    return (close + containing)[:SUGGESTIONS]


def is_like_a_name(text: str) -> bool:
    """Tell whether a text is spelt as the names of causes and detectors are, and no error text."""
    return re.fullmatch(r"[a-z][a-z0-9]*(?:[-_ ][a-z0-9]+){0,7}", text.strip().lower()) is not None


def spelt(name: str) -> str:
    """Return a name as it is written here: ``LR too high`` is lr-too-high."""
    return re.sub(r"[\s_]+", "-", name.strip().lower())


def explain_cause(cause: Cause, level: int = 1) -> str:
    """Return a cause's page: what it is, its remedies, what confirms it, and what surrounds it."""
    sub = "#" * (level + 1)
    nothing_known = Run()
    lines = [
        f"{'#' * level} {cause.name}",
        f"**{cause.issue_in(nothing_known)}.** A cause. Severity: {cause.severity.value}. "
        f"Specialist: `{cause.specialist}`.",
        cause.what,
        f"{sub} What to do",
    ]
    for number, remedy in enumerate(cause.remedies_for(nothing_known), start=1):
        lines.append(
            f"{number}. **{remedy.change}.**\n"
            f"   - Expect: {remedy.expected_effect}.\n"
            f"   - Verify: {remedy.verify}.\n"
            f"   - If it fails: {remedy.if_it_fails}."
        )
    lines += [f"{sub} What would settle it", f"{_sentence(cause.confirm_in(nothing_known))}."]
    lines += [f"{sub} What finds it", _finders(cause)]
    surroundings = _surroundings(cause)
    if surroundings:
        lines += [f"{sub} What surrounds it", surroundings]
    return "\n\n".join(lines)


def explain_detector(detector: Detector, level: int = 1) -> str:
    """Return a detector's page: what it needs, what it can suggest, and its own documentation."""
    _, _, body = cleandoc(detector.doc).partition("\n")
    deeper = _HEADING.sub(lambda found: "#" * (len(found[0]) + level - 1), body.strip())
    lines = [
        f"{'#' * level} {detector.name}",
        f"**{detector.title}.** A detector{_former(detector)}.",
        f"- Needs: {needs_in_words(detector) or 'nothing in particular'}.\n"
        f"- Can suggest: {listed(detector.suggests) or 'no cause of its own'}.",
        deeper,
    ]
    return "\n\n".join(line for line in lines if line)


def _former(detector: Detector) -> str:
    former = former_name(detector.name)
    return f", formerly called `{former}`" if former else ""


def detectors_of(cause: str) -> list[Detector]:
    """Return the detectors that can suggest a cause."""
    return [d for d in all_detectors() if cause in d.suggests]


def needs_in_words(detector: Detector) -> str:
    """Return what a detector needs, such as ``the training loss and the source``."""
    return " and ".join(need_of(need).what for need in detector.needs)


def listed(names: Iterable[str]) -> str:
    """Return names as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def _finders(cause: Cause) -> str:
    rows = [
        f"- `{d.name}`, from {needs_in_words(d) or 'any run'}: {d.title}."
        for d in detectors_of(cause.name)
    ]
    return "\n".join(rows) if rows else "No detector reaches it yet."


def _surroundings(cause: Cause) -> str:
    origins = sorted(c.name for c in all_causes().values() if cause.name in c.brings_about)
    rows = []
    if cause.brings_about:
        rows.append(f"- It brings about: {listed(cause.brings_about)}.")
    if origins:
        rows.append(f"- It may follow from: {listed(origins)}.")
    return "\n".join(rows)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
