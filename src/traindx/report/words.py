"""What every report says in the same words: numbers, confidence, places, gaps, clean text.

Whatever came from an artifact passes through `clean` or `clean_block` before a reader sees it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from traindx.model.findings import (
    LISTED_FROM,
    SHOWN_FROM,
    Diagnosis,
    Evidence,
    Hypothesis,
    Skipped,
    Status,
)
from traindx.model.needs import need_of

STATUS = {
    Status.COMPLETE: "Problem found",
    Status.PARTIAL: "Problem found, not all of it confirmed",
    Status.HEALTHY: "No problem found",
    Status.INSUFFICIENT: "Not enough evidence",
}

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movement
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # titles, links, device strings
    r"|\x1b[ -/]*[0-~]"
)
# they reorder what is read: a name that shows as another one
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean(text: object, limit: int | None = None) -> str:
    """Return text on one line, without terminal sequences and with control characters spelt out."""
    spelt = clean_piece(text).strip()
    return shorten(spelt, limit) if limit else spelt


def clean_piece(text: object) -> str:
    """Return text as `clean` does, with the blanks at its ends, for a piece of a sentence."""
    flat = re.sub(r"[\r\n\t\v\f\u2028\u2029\x85]+", " ", _SEQUENCE.sub("", str(text)))
    return "".join(_spell(c) for c in flat)


def clean_block(text: object) -> str:
    """Return text with its lines kept and everything else as `clean` does."""
    lines = re.split(r"\r\n|\n|\r", _SEQUENCE.sub("", str(text)))
    return "\n".join("".join(_spell(c) for c in line.expandtabs(4)).rstrip() for line in lines)


def _spell(char: str) -> str:
    if char in _REORDERING:
        return ""
    category = unicodedata.category(char)
    if category == "Cs":  # half of a surrogate pair, which no encoding can write
        return "\ufffd"
    if category in {"Cc", "Zl", "Zp"}:
        return f"\\x{ord(char):02x}"
    return char


def shorten(text: str, limit: int) -> str:
    """Cut the middle of a long text: names differ at both of their ends."""
    if len(text) <= limit:
        return text
    head = (limit - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def number(value: float) -> str:
    """Return a number with the digits a person wants."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.4g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def step(value: float) -> str:
    """Return a step or an epoch in full: it has to be found again in the log."""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return number(value)


def band(hypothesis: Hypothesis) -> str:
    """Return what a confidence means in a word: confirmed, shown, fits or open."""
    if hypothesis.confirmed:
        return "confirmed"
    if hypothesis.confidence > SHOWN_FROM:
        return "shown"
    return "fits" if hypothesis.confidence >= LISTED_FROM else "open"


def confidence(hypothesis: Hypothesis) -> str:
    """Return a confidence as word and number."""
    digits = 3 if hypothesis.confirmed else 2  # more than any argument reaches
    return f"{band(hypothesis)} ({hypothesis.confidence:.{digits}f})"


RULED_OUT = 0.05


def place(evidence: Evidence) -> str:
    """Return where evidence can be looked up."""
    artifact = clean(evidence.artifact, 120)
    return f"{artifact}: {clean(evidence.locator, 120)}" if evidence.locator else artifact


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 check, 2 checks."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def open_hypotheses(diagnosis: Diagnosis) -> tuple[Hypothesis, ...]:
    """Return what is considered but not listed as a cause, and is no consequence of one.

    What is ruled out stays in the JSON and off the page.
    """
    return tuple(
        h
        for h in diagnosis.hypotheses
        if not h.confidence >= LISTED_FROM
        and not h.confidence < RULED_OUT
        and h.cause not in diagnosis.folded
    )


def questions(diagnosis: Diagnosis) -> list[str]:
    """Return the questions that no hypothesis on the page asks beside its name."""
    shown = (*diagnosis.root_causes, *open_hypotheses(diagnosis))
    asked = [h.confirm_by for h in shown if h.confirm_by and band(h) in ("fits", "open")]
    return [q for q in diagnosis.questions if not q.endswith(tuple(asked))]


def chain(hypothesis: Hypothesis) -> str:
    """Return a cause and what follows from it."""
    return " → ".join(clean(name, 80) for name in (hypothesis.cause, *hypothesis.consequences))


@dataclass(frozen=True, slots=True)
class Gap:
    """Checks that wait for the same artifact, and how to get it; no artifact, only a reason."""

    missing: str
    detectors: tuple[str, ...]
    how: str


def gaps(skipped: Sequence[Skipped]) -> list[Gap]:
    """Group what was not checked by what is missing, the most rewarding first.

    A check that misses several artifacts stands with the one that most checks wait for.
    """
    wanted = Counter(need for item in skipped for need in item.needs)
    detectors: dict[tuple[str, str], list[str]] = {}
    for item in skipped:
        need = max(item.needs, key=lambda n: (wanted[n], n), default="")
        key = (_plainly(need) if item.detector else "", _way_to(need, item))
        others = " and ".join(_plainly(n) for n in item.needs if n != need)
        name = clean(item.detector, 80)
        detectors.setdefault(key, []).append(f"{name}, with {others}" if others else name)
    made = [Gap(m, tuple(filter(None, names)), how) for (m, how), names in detectors.items()]
    return sorted(made, key=lambda gap: (-len(gap.detectors), gap.missing))


GAPS_NAMED = 2


def unchecked(skipped: Sequence[Skipped], room: int = 200) -> str:
    """Return in one line how many checks were not made, and what most of them wait for."""
    found = [gap for gap in gaps(skipped) if gap.missing][:GAPS_NAMED]
    waiting = [f"{len(gap.detectors)} {_verb(gap)} {gap.missing}" for gap in found[:1]]
    waiting += [f"{len(gap.detectors)} {gap.missing}" for gap in found[1:]]
    while waiting and len(line := f"{len(skipped)} ({', '.join(waiting)})") > room:
        waiting.pop()
    return line if waiting else str(len(skipped))


def _verb(gap: Gap) -> str:
    return "needs" if len(gap.detectors) == 1 else "need"


def reasons(skipped: Sequence[Skipped]) -> list[str]:
    """Return why checks were not made for which no artifact is missing: a limit, a broken file."""
    return [gap.how for gap in gaps(skipped) if not gap.missing]


def _plainly(need: str) -> str:
    return clean(need_of(need).what, 80) if need else ""


def _way_to(need: str, item: Skipped) -> str:
    """Return how to get one artifact, where the ways are given for each of them in turn."""
    ways = item.how.split("; ")
    each = dict(zip(item.needs, ways, strict=False)) if len(ways) == len(item.needs) else {}
    return clean(each.get(need, item.how), 300)


def parts_of_diff(patch: str) -> list[tuple[str, str]]:
    """Return the lines of a unified diff, each with what it is: added, removed, place, context."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    lines = clean_block(patch).rstrip("\n").split("\n")
    return [
        ("place" if line.startswith(("+++", "---")) else kinds.get(line[:1], "context"), line)
        for line in lines
    ]
