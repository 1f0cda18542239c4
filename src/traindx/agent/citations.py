"""Checks every citation against the artifacts: what cannot be found there does not count.

A quote has to stand in the line that is cited, a value in the series at that step, a number in a
statement among the numbers that it cites. Words alone prove little: a line of prose that no reader
takes for a measurement, a failure, a setting or code may say anything, and is marked as mere text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import permutations
from math import isfinite, isinf, isnan

from traindx.agent.line_kinds import LineKinds
from traindx.agent.lookup import Lookup
from traindx.agent.schema import LONGEST_NUMBER, Cited, Point
from traindx.causes import all_causes
from traindx.model.findings import Diagnosis, Evidence
from traindx.report.words import clean, number, step

SHORTEST_QUOTE = 8  # characters; a shorter one is in every log, unless it is the whole line
MOST_LINES = 40  # a longer stretch is no quotation
ROUNDED = 0.05  # of the true value, however few digits were printed
DERIVED = 0.05  # how far a ratio or a difference in a statement may be from the cited numbers'
MOST_COMPARED = 12  # numbers whose ratios and differences are tried

_LINES = re.compile(r"lines?\s*(\d{1,9})(?:\s*(?:to|through|[-–])\s*(\d{1,9}))?", re.IGNORECASE)
_NUMBERED = re.compile(r"^\s*\d{1,9}: ")
_NUMBER = re.compile(
    r"(?<![\w.])([-+−]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4})?)(?!\.?\d)"
    r"\s?([^\W\d_]{1,7}\b|[%×]|-(?:fold|times)\b)?"
)
_DERIVED_BEFORE = re.compile(r"\b(?:by|factor(?: of)?|ratio(?: of)?|times)\s*$", re.IGNORECASE)
_DERIVED_AFTER = frozenset({"%", "×", "x", "X", "fold", "-fold", "times", "-times", "percent"})
_ORDINAL = frozenset({"st", "nd", "rd", "th"})
_SCALE = {"k": 3, "K": 3, "M": 6, "G": 9, "B": 9}
_WORD_NUMBER = re.compile(r"[-+]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][-+]?\d{1,4})?")


@dataclass(frozen=True, slots=True)
class Checked:
    """A citation that was looked up: the evidence it turned out to be, or why it was struck out.

    `is_observed` tells evidence that a reader took for something the run did, or code it ran, from
    mere text. `is_rule` marks what one of the engine's own rules had found.
    """

    cited: Cited
    evidence: tuple[Evidence, ...] = ()
    why_struck: str = ""
    is_observed: bool = False
    is_rule: bool = False

    @property
    def is_struck(self) -> bool:
        return bool(self.why_struck)


class Verifier:
    """Looks citations up in one run and in the engine's diagnosis of it."""

    def __init__(self, lookup: Lookup, engine: Diagnosis) -> None:
        self.lookup = lookup
        self.engine = engine
        self.kinds = LineKinds(lookup.run)

    def check_all(self, cited: Iterable[Cited]) -> tuple[Checked, ...]:
        """Check each citation once, however often it is repeated."""
        return tuple(self.check(c) for c in dict.fromkeys(cited))

    def check(self, cited: Cited) -> Checked:
        """Look one citation up."""
        if cited.finding is not None:
            return self._check_finding(cited)
        if cited.metric:
            return self._check_points(cited)
        return self._check_quote(cited)

    def check_place(self, file: str, line: int) -> tuple[str, str]:
        """Return the source file that a location means, or else why there is no such place."""
        artifact = self.lookup.artifact(file)
        sources = {s.path: s.text for s in self.lookup.run.sources}
        if artifact is None or artifact not in sources:
            return "", f"{clean(file, 80)} is no source file that was read"
        text = self.lookup.line(artifact, line)
        if text is None or not text.strip():
            return "", f"{clean(artifact, 80)} has nothing in line {line}"
        return artifact, ""

    def _check_finding(self, cited: Cited) -> Checked:
        findings = self.engine.findings
        if cited.finding is None or not 0 <= cited.finding < len(findings):
            return Checked(cited, why_struck=f"the engine has no finding {cited.finding}")
        evidence = findings[cited.finding].evidence
        return Checked(cited, evidence, is_observed=True, is_rule=True)

    def _check_points(self, cited: Cited) -> Checked:
        if not self.lookup.series(cited.metric):
            why = f"no metric is called {clean(cited.metric, 60)}"
            return Checked(cited, why_struck=why)
        evidence, numbers = [], []
        for point in cited.points:
            found = self.lookup.values_at(cited.metric, float(point.step))
            matching = [f for f in found if is_printed_as(f[0], point.value)]
            if not matching:
                return Checked(cited, why_struck=self._miss(cited.metric, point, found))
            value, series, index = matching[0]
            at = float(series.steps[index])
            says = f"{series.name} is {number(value)} at {series.when(index)}"
            where = series.origin.artifact, series.where(index)
            evidence.append(Evidence(says, *where, (at, at), {series.name: value}))
            numbers += [value, at]
        unsupported = unsupported_number(cited.says, numbers)
        if unsupported:
            return Checked(cited, why_struck=f"{unsupported} is not among the values it cites")
        return Checked(cited, tuple(evidence), is_observed=True)

    def _miss(self, metric: str, point: Point, found: Sequence[tuple[float, object, int]]) -> str:
        name, at = clean(metric, 60), step(float(point.step))
        if not found:
            return f"{name} has no value at step {at}"
        values = " or ".join(number(value) for value, _, _ in found[:3])
        return f"{name} at step {at} is {values}, not {point.value}"

    def _check_quote(self, cited: Cited) -> Checked:
        artifact = self.lookup.artifact(cited.artifact)
        if artifact is None:
            why = f"{clean(cited.artifact, 80) or 'an unnamed file'} is not among what was read"
            return Checked(cited, why_struck=why)
        place = _LINES.search(cited.locator)
        if place is None:
            return self._check_setting(cited, artifact)
        first = int(place[1])
        last = min(max(int(place[2] or first), first), first + MOST_LINES - 1)
        lines = dict(self.lookup.lines(artifact, first, last))
        cited = replace(cited, quote=_as_it_stands(cited.quote, "\n".join(lines.values())))
        why = self._misquoted(cited, artifact, lines)
        if why:
            return Checked(cited, why_struck=why)
        holder = next((n for n, text in lines.items() if _is_in(cited.quote, text)), None)
        spanned = list(lines) if holder is None else [holder]
        locator = f"lines {first} to {last}" if holder is None else f"line {holder}"
        observed = any(self.kinds.is_observed(artifact, n, cited.quote) for n in spanned)
        observed = observed and not names_a_cause(cited.quote)
        says = f"“{clean(cited.quote, 200)}”"
        statement = clean(cited.says, 300)
        if statement:
            says = f"{statement.rstrip('.')}: {says}"
        return Checked(cited, (Evidence(says, artifact, locator),), is_observed=observed)

    def _misquoted(self, cited: Cited, artifact: str, lines: dict[int, str]) -> str:
        name = clean(artifact, 200)
        if not lines:
            is_text = self.lookup.has_text(artifact)
            return f"{name} has no {cited.locator}" if is_text else f"{name} is no text to quote"
        text = "\n".join(lines.values())
        if not is_quotation(cited.quote, text):
            return (
                f"“{clean(cited.quote, 80)}” does not stand in {name}, {clean(cited.locator, 40)}"
            )
        known = [float(n) for n in numbers_in(text)] + [float(n) for n in lines]
        unsupported = unsupported_number(cited.says, known)
        return f"{unsupported} does not stand in {name}, {cited.locator}" if unsupported else ""

    def _check_setting(self, cited: Cited, artifact: str) -> Checked:
        for setting in self.lookup.run.config.settings:
            names = (setting.key, setting.locator)
            if setting.artifact != artifact or cited.locator.strip() not in names:
                continue
            told = f"{setting.key} = {setting.value}"
            if not is_quotation(cited.quote, told) and _flat(cited.quote) != _flat(setting.value):
                why = f"{clean(told, 120)}, not {clean(cited.quote, 80)}"
                return Checked(cited, why_struck=why)
            evidence = Evidence(clean(told, 200), artifact, setting.locator or setting.key)
            return Checked(cited, (evidence,), is_observed=self.kinds.is_plain(setting))
        why = f"{clean(artifact, 80)} has no {clean(cited.locator, 60) or 'such place'}"
        return Checked(cited, why_struck=why)


def names_a_cause(text: str) -> bool:
    """Tell whether a text uses a name of the catalogue, as no training program does of itself."""
    words = set(re.findall(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+", text.lower()))
    return not words.isdisjoint(all_causes())


def _as_it_stands(quote: str, text: str) -> str:
    """Return a quote without the line number that a tool shows before it, if that was copied."""
    bare = _NUMBERED.sub("", quote)
    return bare if not is_quotation(quote, text) and is_quotation(bare, text) else quote


def is_quotation(quote: str, text: str) -> bool:
    """Tell whether a text holds a quote, blanks aside, and the quote is long enough to mean it."""
    wanted, whole = _flat(quote), _flat(text)
    if not wanted or wanted not in whole:
        return False
    return len(wanted) >= SHORTEST_QUOTE or any(wanted == _flat(t) for t in text.split("\n"))


def _is_in(quote: str, text: str) -> bool:
    return bool(_flat(quote)) and _flat(quote) in _flat(text)


def _flat(text: object) -> str:
    return " ".join(clean(text).split())


def is_printed_as(value: float, printed: Decimal) -> bool:
    """Tell whether a value may have been printed so: rounded or cut off at its last digit.

    However few digits there are, a value that is off by more than a twentieth is another one.
    """
    if not printed.is_finite() or not isfinite(value):
        if printed.is_nan() or isnan(value):
            return printed.is_nan() and isnan(value)
        return isinf(value) and printed.is_infinite() and (value > 0) == (printed > 0)
    unit = float(Decimal(1).scaleb(int(printed.as_tuple().exponent)))
    difference = abs(value - float(printed))
    if difference <= 1e-9 * abs(value):
        return True
    if unit <= 1e-3 and float(printed) == 0:
        return difference < unit  # 0.000 is how a log prints a millionth
    is_cut_off = value * float(printed) > 0 and 0 < abs(value) - abs(float(printed)) < unit
    is_rounded = difference <= unit / 2
    return (is_rounded or is_cut_off) and difference < ROUNDED * abs(value)


def numbers_in(text: str) -> list[Decimal]:
    """Return the numbers of a text, also those that are glued to a unit or a name."""
    found = []
    for match in _WORD_NUMBER.finditer(text):
        number_text = match[0].replace(",", "").replace("_", "")
        if len(number_text) <= LONGEST_NUMBER:
            found.append(Decimal(number_text))
    return found


def unsupported_number(statement: str, known: Sequence[float]) -> str:
    """Return the first number of a statement that the cited numbers do not bear out, or nothing.

    What is said to be a ratio, a difference or a percentage may be one of two of them.
    """
    for match in _NUMBER.finditer(statement):
        unit = match[2] or ""
        if unit in _ORDINAL:
            continue
        before = statement[: match.start()]
        is_derived = unit in _DERIVED_AFTER or _DERIVED_BEFORE.search(before) is not None
        plain = match[1].replace(",", "").replace("_", "").replace("−", "-")
        if len(plain) > LONGEST_NUMBER:
            return match[1]
        stated = Decimal(plain).scaleb(_SCALE.get(unit, 0))
        if not any(_is_said(value, stated) for value in known) and not (
            is_derived and _is_derived(abs(float(stated)), known)
        ):
            return match[1]
    return ""


def _is_said(value: float, stated: Decimal) -> bool:
    """Tell whether a statement names a value, also without its sign or in percent."""
    return any(is_printed_as(v, stated) for v in (value, -value, 100 * value))


def _is_derived(wanted: float, known: Sequence[float]) -> bool:
    numbers = [v for v in dict.fromkeys(known) if isfinite(v)][:MOST_COMPARED]
    for a, b in permutations(numbers, 2):
        derived = [abs(a - b)]
        if b:
            derived += [abs(a / b), 100 * abs(a / b), 100 * abs((a - b) / b)]
        if any(abs(d - wanted) <= DERIVED * wanted for d in derived):
            return True
    return False
