"""Outputs of a model in a console log: one pass that stops only where a word gives them away."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from traindx.model.metric_names import PHASES, words
from traindx.model.run import Confusion, Setting, TextSample
from traindx.readers.outputs.matrices import (
    ClassificationReport,
    read_counts,
    read_matrix,
    read_report,
)
from traindx.readers.outputs.texts import MAX_SAMPLES, MAX_TEXT, Pairs
from traindx.readers.text import decode

BLOCK = 1 << 20
AHEAD = 1 << 15  # bytes that may follow a heading: a matrix, a report
MAX_LINES = 210
MAX_FOUND = 500  # matrices, reports and counts
MAX_LOOKED = 20_000  # headings that are followed
_LONG = frozenset({"matrix", "report"})
_NAMES = (
    r"(?:model |greedy |decoded |raw )?(?:samples?|generated(?: text| samples?| outputs?)?"
    r"|generations?|outputs?|predict(?:ion|ed)(?: text)?|completions?|responses?|hypothes[ie]s"
    r"|decoded|continuation|translation)"
)
_SAID = re.compile(
    rf"""(?i)(?:^|[\s|>\]}}"'*)-])({_NAMES})(?:\s*[#(\[]?\s?[\w ,./=-]{{0,24}}[)\]]?)?\s*"""
    r"(?::|=>|->|=)(?!\S*[/\\]\S*$)\s*(.*)$"
)
_QUOTED = re.compile(r"""^(["'`])(.*?)(?<!\\)\1[\s,.;)}\]]*(?:[|(].*)?$""")
_NO_TEXT = re.compile(
    r"[-+.,:%]*\d[-+\d.,:%]*$|tensor\(|torch\.|array\(|\[[-+\d\s.,e]*\]?$|<|\(?\d+,|None$|True$|False$"
    r"|\{|[-+\d.]+ ?[a-z%/]{1,10}\b"
)
_PAIR = re.compile(
    r"(?i)\bpred\w*\s*[:=]\s*['\"]?([\w-]{1,40})['\"]?\W+"
    r"(?:true |ground )?(?:label|target|truth|true|gt|actual|gold)\s*[:=]\s*['\"]?([\w-]{1,40})"
)
_CLASSES = re.compile(r"(?i)\b(?:class|label|target)(?:es|s)?[ _](?:counts?|distribution|frequenc)")
_ABOUT_CLASSES = re.compile(r"(?i)class|label|target|distribution|\by\b|\by_")
_INTEGER_KEYS = re.compile(r"Counter\(\{\s*(?:np\.int64\()?-?\d+\)?:")
_RULE = re.compile(r"^[\s=*_~#-]*$")

# a word that stands in every heading of a kind, and what has to follow it; the word is searched for
# at the speed of memory, the expression only where it occurs
# (a number that ends a phrase is a metric: "samples: 1280,")
_TEXT = rb"\b[^:=>\n]{0,30}[:=>](?![ \t]*[-+]?[\d.]+(?:e-?\d+)?[ \t]*(?:[,;|/%)\]\n]|[a-zA-Z]|$))"
_SIGNS: tuple[tuple[str, tuple[bytes, ...], re.Pattern[bytes]], ...] = (
    ("sample", (b"ample",), re.compile(rb"amples?" + _TEXT)),
    ("sample", (b"enerat",), re.compile(rb"enerat(?:ed|ions?)" + _TEXT)),
    ("sample", (b"utput",), re.compile(rb"utputs?" + _TEXT)),
    ("sample", (b"redict",), re.compile(rb"redict(?:ion|ed)" + _TEXT)),
    ("sample", (b"ompletion",), re.compile(rb"ompletions?" + _TEXT)),
    ("sample", (b"esponse",), re.compile(rb"esponses?" + _TEXT)),
    ("sample", (b"ypothes", b"ecoded", b"ontinuation", b"ranslation"),
     re.compile(rb"(?:ypothes[ie]s|ecoded|ontinuation|ranslation)" + _TEXT)),
    ("pair", (b"pred", b"Pred"),
     re.compile(rb"[Pp]red\w{0,20}\s?[:=][^\n]{1,60}?(?:label|target|[Tt]ru|gt|[Aa]ctual|gold)")),
    ("matrix", (b"onfusion",), re.compile(rb"onfusion[ _]?[Mm]atrix")),
    ("matrix", (b"redicted",), re.compile(rb"^(?:col_0|[Pp]redicted)\b[^:=\n]*\d\s*$", re.M)),
    ("counts", (b"Counter({",), re.compile(rb"Counter\(\{")),
    ("counts", (b"ount", b"istribution", b"requenc"),
     re.compile(rb"(?:ounts?|istribution|requenc(?:y|ies))\b[^\n\[{]{0,40}[\[{]")),
    ("report", (b"f1-score",), re.compile(rb"precision\s+recall\s+f1-score\s+support")),
)  # fmt: skip


@dataclass(slots=True)
class Outputs:
    """What a log says of the outputs of the model, each with the number of its line."""

    artifact: str
    confusions: list[Confusion] = field(default_factory=list)
    counts: list[Setting] = field(default_factory=list)
    reports: list[tuple[int, str, ClassificationReport]] = field(default_factory=list)
    pairs: Pairs = field(default_factory=Pairs)
    _first: list[tuple[int, TextSample]] = field(default_factory=list)
    _last: deque[tuple[int, TextSample]] = field(
        default_factory=lambda: deque(maxlen=MAX_SAMPLES // 2)
    )
    looked: int = 0

    @property
    def samples(self) -> list[tuple[int, TextSample]]:
        """Return the first texts and the last ones, with their lines."""
        return [*self._first, *self._last]

    def look(self, kind: str, lines: Sequence[str], number: int, before: Sequence[str]) -> None:
        """Look at a line that has a telling word in it, and at what follows."""
        if kind == "sample":
            self._sample(lines, number)
        elif kind == "pair" and (pair := _PAIR.search(lines[0])) is not None:
            self.pairs.add(pair[2], pair[1], f"line {number}")
        elif kind == "matrix" and len(self.confusions) < MAX_FOUND:
            is_heading = "onfusion" in lines[0]
            read = read_matrix(lines[1:] if is_heading and "[[" not in lines[0] else lines)
            if read is not None:
                self.confusions.append(Confusion(*read, self.artifact, f"line {number}"))
        elif kind == "counts" and len(self.counts) < MAX_FOUND:
            self._count(lines[0], number)
        elif kind == "report" and len(self.reports) < MAX_FOUND:
            report = read_report(lines[1:])
            if report is not None:
                self.reports.append((number, _heading(before) or "val", report))

    def _sample(self, lines: Sequence[str], number: int) -> None:
        said = _SAID.search(lines[0][: 2 * MAX_TEXT])
        if said is None:
            return
        text = said[2].strip()
        if not text:  # the text stands below its heading
            below = lines[1:13]
            ends = [i for i, line in enumerate(below) if i and _RULE.match(line)]
            text = "\n".join(below[: ends[0] if ends else len(below)]).strip()
        quoted = _QUOTED.match(text)
        text = quoted[2] if quoted else text
        if not text.strip() or (quoted is None and _NO_TEXT.match(text)):
            return
        sample = TextSample(text[:MAX_TEXT], self.artifact, f"line {number}")
        kept = self._first if len(self._first) < MAX_SAMPLES // 2 else self._last
        kept.append((number, sample))

    def _count(self, line: str, number: int) -> None:
        is_counter = "Counter(" in line
        is_named = (_ABOUT_CLASSES if is_counter else _CLASSES).search(line) is not None
        if not is_named and not (is_counter and _INTEGER_KEYS.search(line)):
            return
        counts = read_counts(line[:5000])
        if counts is not None:
            phase = _phase(line.split("{", maxsplit=1)[0].split("[", maxsplit=1)[0])
            key = f"{phase}.class_counts" if phase else "class_counts"
            self.counts.append(Setting(key, counts, self.artifact, f"line {number}"))


def _phase(text: str) -> str:
    return next((PHASES[w] for w in words(text[:200]) if w in PHASES), "")


def _heading(above: Sequence[str]) -> str:
    """Return the phase that a line above announces; one with numbers in it tells of metrics."""
    return _phase(" ".join(line for line in above if not re.search(r"\d\.\d", line)))


def shows_outputs(head: bytes) -> bool:
    """Tell whether the head of a file shows what a model put out."""
    found = Outputs("")
    _search(found, head, 1, len(head))
    return len(found.samples) > 1 or bool(found.confusions or found.reports)


def read_outputs(path: Path) -> Outputs:
    """Return everything in a log that the model put out."""
    found = Outputs(str(path))
    for text, first, ready in _stretches(path):
        _search(found, text, first, ready)
    return found


def _search(found: Outputs, text: bytes, first: int, ready: int) -> None:
    hits = sorted(
        (hit.start(), kind)
        for kind, signs, pattern in _SIGNS
        if any(sign in text for sign in signs)
        for hit in pattern.finditer(text, 0, ready)
    )
    start = end = 0
    number, seen = first, set[str]()
    for position, kind in hits:
        if position >= end:
            begin = text.rfind(b"\n", start, position) + 1 or start
            number += text.count(b"\n", start, begin)
            start, seen = begin, set()
            end = text.find(b"\n", position) + 1 or len(text)
        if kind not in seen:
            seen.add(kind)
            _look(found, kind, text, start, number)


def _look(found: Outputs, kind: str, text: bytes, start: int, number: int) -> None:
    if found.looked >= MAX_LOOKED and kind != "sample":
        return
    found.looked += 1
    follow = text[start : start + (AHEAD if kind in _LONG else 2 * MAX_TEXT)]
    lines = decode(follow).replace("\r", "").split("\n", MAX_LINES)[:MAX_LINES]
    above = decode(text[max(0, start - 300) : start]).split("\n")[-4:]
    found.look(kind, lines, number, above)


def _stretches(path: Path) -> Iterator[tuple[bytes, int, int]]:
    """Yield pieces of a log with the line they begin at, and how far headings count in them."""
    with path.open("rb") as file:
        rest, number = b"", 1
        while data := file.read(BLOCK):
            text = rest + data
            cut = text.rfind(b"\n", 0, max(0, len(text) - AHEAD)) + 1
            if len(data) == BLOCK:
                if cut:
                    yield text, number, cut
                    number += text.count(b"\n", 0, cut)
                # a line without an end is no place for a heading
                rest = text[cut:] if cut or len(text) < 4 * BLOCK else b""
            else:
                rest = text
        if rest:
            yield rest, number, len(rest)
