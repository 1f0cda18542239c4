"""What the specialist has to answer: one JSON object, parsed strictly into frozen values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any

LONGEST_TEXT = 2000
MOST_CAUSES = 10
MOST_EVIDENCE = 20
MOST_POINTS = 12
MOST_PROBLEMS = 12
LONGEST_NUMBER = 40

_TEXT = {"type": "string"}
_EVIDENCE = {
    "oneOf": [
        {
            "type": "object",
            "required": ["says", "artifact", "locator", "quote"],
            "properties": {"says": _TEXT, "artifact": _TEXT, "locator": _TEXT, "quote": _TEXT},
            "additionalProperties": False,
        },
        {
            "type": "object",
            "required": ["says", "metric", "points"],
            "properties": {
                "says": _TEXT,
                "metric": _TEXT,
                "points": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["step", "value"],
                        "properties": {
                            "step": {"type": "number"},
                            "value": {"type": ["number", "string"]},
                        },
                        "additionalProperties": False,
                    },
                },
            },
            "additionalProperties": False,
        },
        {
            "type": "object",
            "required": ["finding"],
            "properties": {"finding": {"type": "integer"}, "says": _TEXT},
            "additionalProperties": False,
        },
    ]
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "required": ["summary", "root_causes"],
    "properties": {
        "summary": _TEXT,
        "root_causes": {
            "type": "array",
            "maxItems": MOST_CAUSES,
            "items": {
                "type": "object",
                "required": ["cause", "confidence", "evidence"],
                "properties": {
                    "cause": _TEXT,
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                    "evidence": {"type": "array", "minItems": 1, "items": _EVIDENCE},
                    "against": {"type": "array", "items": _EVIDENCE},
                    "location": {
                        "type": ["object", "null"],
                        "required": ["file", "line"],
                        "properties": {"file": _TEXT, "line": {"type": "integer"}},
                        "additionalProperties": False,
                    },
                    "reasoning": _TEXT,
                },
                "additionalProperties": False,
            },
        },
        "questions": {"type": "array", "items": _TEXT},
    },
    "additionalProperties": False,
}


class MalformedAnswer(ValueError):
    """An answer that is not what was asked for; `problems` says where, for the one who wrote it."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Point:
    """A value of a metric as it was cited, with the digits it was printed with."""

    step: Decimal
    value: Decimal


@dataclass(frozen=True, slots=True)
class Cited:
    """One piece of evidence as the specialist cites it: lines, points of a metric, or a finding."""

    says: str
    artifact: str = ""
    locator: str = ""
    quote: str = ""
    metric: str = ""
    points: tuple[Point, ...] = ()
    finding: int | None = None

    @property
    def place(self) -> str:
        """Return where it is said to be found."""
        if self.finding is not None:
            return f"finding {self.finding}"
        if self.metric:
            return f"{self.metric} at {', '.join(str(p.step) for p in self.points)}"
        return f"{self.artifact}: {self.locator}"


@dataclass(frozen=True, slots=True)
class Opinion:
    """A cause that the specialist names, and on what grounds."""

    cause: str
    confidence: float
    evidence: tuple[Cited, ...]
    against: tuple[Cited, ...] = ()
    location: tuple[str, int] | None = None
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class SpecialistAnswer:
    """The whole answer."""

    summary: str
    opinions: tuple[Opinion, ...]
    questions: tuple[str, ...] = ()


def parse_answer(text: str) -> SpecialistAnswer:
    """Return the answer in a text, or say with `MalformedAnswer` what is wrong with it."""
    data = _json_in(text)
    check = _Check()
    answer = check.answer(data)
    if check.problems:
        raise MalformedAnswer(check.problems[:MOST_PROBLEMS])
    return answer


def _json_in(text: str) -> Any:
    """Return the one JSON object of a text; a fence around it or a sentence before it is forgiven.

    Numbers keep their digits: how exact a citation is depends on how it was printed.
    """
    fenced = re.findall(r"```(?:json)?\s*\n(.*?)```", text, re.DOTALL)
    start, end = text.find("{"), text.rfind("}")
    candidates = [text.strip(), *reversed(fenced), text[start : end + 1] if start >= 0 else ""]
    why = "there is no JSON object in it"
    for candidate in filter(None, candidates):
        try:
            return json.loads(
                candidate, parse_float=_printed, parse_int=_printed, parse_constant=str
            )
        except (ValueError, RecursionError) as error:
            why = f"it is not valid JSON: {error}" if "{" in candidate else why
    raise MalformedAnswer([why])


def _printed(digits: str) -> Decimal:
    """Return a number with its digits; one that no float can hold is infinite."""
    number = float(digits)
    return (
        Decimal(digits) if isfinite(number) and len(digits) <= LONGEST_NUMBER else Decimal(number)
    )


def _whole(number: Decimal) -> int:
    return int(number) if abs(number) < 10**9 and number == int(number) else -1


class _Check:
    """Turns JSON into values and notes every way in which it is not what was asked for."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def answer(self, data: Any) -> SpecialistAnswer:
        data = self._fields(data, "the answer", {"summary", "root_causes"}, {"questions"})
        return SpecialistAnswer(
            self._text(data.get("summary", ""), "summary"),
            self._list(data.get("root_causes", []), "root_causes", self._opinion, MOST_CAUSES),
            self._list(data.get("questions", []), "questions", self._text, MOST_EVIDENCE),
        )

    def _opinion(self, data: Any, where: str) -> Opinion:
        optional = {"against", "location", "reasoning"}
        data = self._fields(data, where, {"cause", "confidence", "evidence"}, optional)
        evidence = data.get("evidence", [])
        if evidence == []:
            self.problems.append(f"{where}.evidence is empty: a cause needs evidence")
        return Opinion(
            self._text(data.get("cause", ""), f"{where}.cause"),
            self._confidence(data.get("confidence", 0), f"{where}.confidence"),
            self._list(evidence, f"{where}.evidence", self._cited, MOST_EVIDENCE),
            self._list(data.get("against", []), f"{where}.against", self._cited, MOST_EVIDENCE),
            self._location(data.get("location"), f"{where}.location"),
            self._text(data.get("reasoning", ""), f"{where}.reasoning"),
        )

    def _cited(self, data: Any, where: str) -> Cited:
        if isinstance(data, dict) and "finding" in data:
            data = self._fields(data, where, {"finding"}, {"says"})
            number = self._number(data.get("finding"), f"{where}.finding")
            says = self._text(data.get("says", ""), f"{where}.says")
            return Cited(says, finding=_whole(number))
        if isinstance(data, dict) and "metric" in data:
            data = self._fields(data, where, {"says", "metric", "points"})
            points = self._list(data.get("points"), f"{where}.points", self._point, MOST_POINTS)
            if not points:
                self.problems.append(f"{where}.points is empty")
            says = self._text(data.get("says", ""), f"{where}.says")
            return Cited(
                says, metric=self._text(data.get("metric", ""), f"{where}.metric"), points=points
            )
        names = ("says", "artifact", "locator", "quote")
        data = self._fields(data, where, set(names))
        says, artifact, locator, quote = (
            self._text(data.get(name, ""), f"{where}.{name}") for name in names
        )
        return Cited(says, artifact, locator, quote)

    def _point(self, data: Any, where: str) -> Point:
        data = self._fields(data, where, {"step", "value"})
        step = self._number(data.get("step"), f"{where}.step")
        return Point(step, self._number(data.get("value"), f"{where}.value", finite=False))

    def _location(self, data: Any, where: str) -> tuple[str, int] | None:
        if data is None:
            return None
        data = self._fields(data, where, {"file", "line"})
        line = self._number(data.get("line"), f"{where}.line")
        return self._text(data.get("file", ""), f"{where}.file"), _whole(line)

    def _fields(
        self, data: Any, where: str, required: set[str], optional: set[str] | None = None
    ) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.problems.append(f"{where} is not an object")
            return {}
        missing = sorted(required - set(data))
        unknown = sorted(set(data) - required - (optional or set()))
        self.problems += [f"{where} has no {name!r}" for name in missing]
        self.problems += [f"{where} has an unknown key {str(name)[:40]!r}" for name in unknown]
        return data

    def _list(self, data: Any, where: str, item: Callable[[Any, str], Any], most: int) -> Any:
        if not isinstance(data, list):
            self.problems.append(f"{where} is not an array")
            return ()
        if len(data) > most:
            self.problems.append(f"{where} has more than {most} items")
        return tuple(item(entry, f"{where}[{i}]") for i, entry in enumerate(data[:most]))

    def _text(self, data: Any, where: str) -> str:
        if not isinstance(data, str):
            self.problems.append(f"{where} is not a string")
            return ""
        return data[:LONGEST_TEXT]

    def _number(self, data: Any, where: str, *, finite: bool = True) -> Decimal:
        try:
            number = data if isinstance(data, Decimal) else _printed(str(data).strip())
        except ValueError:
            self.problems.append(f"{where} is not a number")
            return Decimal(0)
        if isinstance(data, bool) or data is None or (finite and not number.is_finite()):
            self.problems.append(f"{where} is not a number")
            return Decimal(0)
        return number

    def _confidence(self, data: Any, where: str) -> float:
        number = self._number(data, where)
        if not 0 <= number <= 1:
            self.problems.append(f"{where} is not between 0 and 1")
            return 0.0
        return float(number)
