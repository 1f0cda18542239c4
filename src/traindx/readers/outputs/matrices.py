"""Confusion matrices, class counts and classification reports as they are printed."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_CLASSES = 200
_ROW = re.compile(r"\[([^\[\]]*)\]")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_CELLS = re.compile(r"^\s*(\S.*?)((?:\s+\d+(?:\.\d+)?)+)\s*$")
_BRACES = re.compile(r"\{[^{}]{1,4000}\}")
_BRACKETS = re.compile(r"\[([\d\s,.]{1,4000})\]")
_MARGIN = frozenset({"all", "total", "sum"})
_REPORTED = re.compile(r"^\s*(\S.*?)\s+(\d\.\d+|nan)\s+(\d\.\d+|nan)\s+(\d\.\d+|nan)\s+(\d+)\s*$")
_AVERAGES = ("micro avg", "macro avg", "weighted avg", "samples avg")

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class ClassificationReport:
    """A classification report of scikit-learn: per class precision, recall, F1 and support."""

    rows: Mapping[str, tuple[float, float, float, float]]

    @property
    def classes(self) -> dict[str, tuple[float, float, float, float]]:
        return {k: v for k, v in self.rows.items() if k not in _AVERAGES}


def read_matrix(lines: Sequence[str]) -> tuple[Matrix, tuple[str, ...]] | None:
    """Return the square matrix that stands under a heading, and the names of its classes."""
    text = "\n".join(lines)
    opened = text.find("[[")
    if opened < 0 or text.count("\n", 0, opened) > 3:
        return _read_table(lines)
    depth = 0
    for end in range(opened, len(text)):
        depth += (text[end] == "[") - (text[end] == "]")
        if depth == 0:
            rows = [_numbers(row) for row in _ROW.findall(text, opened, end)]
            return _square(rows, [str(i) for i in range(len(rows))])
    return None


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(n) for n in _NUMBER.findall(text)[: MAX_CLASSES + 1])


def _square(
    rows: Sequence[tuple[float, ...]], labels: Sequence[str]
) -> tuple[Matrix, tuple[str, ...]] | None:
    count = len(rows)
    is_square = 2 <= count <= MAX_CLASSES and all(len(row) == count for row in rows)
    is_counted = is_square and all(n >= 0.0 for row in rows for n in row)
    return (tuple(rows), tuple(labels)) if is_counted and any(map(any, rows)) else None


def _read_table(lines: Sequence[str]) -> tuple[Matrix, tuple[str, ...]] | None:
    """Read a table of pandas: a row of predicted labels over rows with the true label."""
    rows: list[tuple[float, ...]] = []
    labels: list[str] = []
    heading = ""
    for line in lines:
        cells = _CELLS.match(line)
        found = _numbers(cells[2]) if cells else ()
        # the row of the predicted labels is the one above, and may be numbers as well
        if cells is None or re.search(r"(?i)pred|actual|true", cells[1]):
            if rows:
                break
            heading += f"{line}\n"
            continue
        if rows and len(found) != len(rows[0]):
            break
        rows.append(found)
        labels.append(cells[1].strip())
    if labels and labels[-1].lower() in _MARGIN:
        rows, labels = [row[:-1] for row in rows[:-1]], labels[:-1]
    if rows and len(rows) == len(rows[0]) + 1:  # a row of labels without a name before it
        rows, labels = rows[1:], labels[1:]
    read = _square(rows, labels)
    first = re.search(r"(?i)pred|actual|true", heading)
    if read is not None and first is not None and first[0].lower() != "pred":
        turned = tuple(zip(*read[0], strict=True)) if "pred" in heading.lower() else read[0]
        return turned, read[1]
    return read


def read_counts(text: str) -> dict[str, float] | None:
    """Return the counts by class in ``Counter({0: 990, 1: 10})``, a dict or a list."""
    braces = _BRACES.search(text)
    if braces is not None:
        try:
            found: Any = ast.literal_eval(re.sub(r"\bnp\.\w+\(([^()]*)\)", r"\1", braces[0]))
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return None
        if not isinstance(found, dict):
            return None
        counts = {str(k)[:40]: v for k, v in found.items()}
    else:
        brackets = _BRACKETS.search(text)
        numbers = _numbers(brackets[1]) if brackets else ()
        counts = {str(i): n for i, n in enumerate(numbers)}
    is_counted = all(
        isinstance(v, (int, float)) and 0 <= v < 1e15 and float(v).is_integer()
        for v in counts.values()
    )
    if not 2 <= len(counts) <= MAX_CLASSES or not is_counted or not any(counts.values()):
        return None
    return {k: float(v) for k, v in counts.items()}


def read_report(lines: Sequence[str]) -> ClassificationReport | None:
    """Return the report whose header line was found; `lines` begin below it."""
    rows: dict[str, tuple[float, float, float, float]] = {}
    blank = 0
    for line in lines:
        found = _REPORTED.match(line)
        blank = 0 if line.strip() else blank + 1
        if found is not None:
            precision, recall, f1, support = map(float, found.groups()[1:])
            rows[found[1].strip()[:40]] = (precision, recall, f1, support)
        elif blank > 1 or (line.strip() and not line.lstrip().startswith("accuracy")):
            break
        if line.lstrip().startswith("weighted avg"):
            break
    report = ClassificationReport(rows)
    return report if 2 <= len(report.classes) <= MAX_CLASSES else None
