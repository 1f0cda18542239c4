"""The history of a W&B run: one row for every call of `log`, gathered into columns."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from traindx.model.run import as_number
from traindx.readers.columns import Cells, Columns
from traindx.readers.formats.wandb import run_messages

UNIT = "history row"
STEP = "_step"
MAX_NAMES = 4000
MAX_POINTS = 20_000_000  # 16 bytes each
MAX_DEPTH = 8


class History:
    """Rows of a history, gathered into columns."""

    def __init__(self) -> None:
        self.count = 0
        self.step: float | None = None
        self.points = 0
        self.left_out = 0
        self._rows: dict[str, array[int]] = {}
        self._values: dict[str, array[float]] = {}

    def add(self, data: bytes) -> list[tuple[str, Any]]:
        """Add a history record; return the texts in it."""
        row: dict[str, Any] = {}
        for name, value in _nested(run_messages.items_of(data)).items():
            _spread(name, value, row, 0)
        if STEP not in row:
            inner = next(run_messages.inner(data, 2), None)
            row[STEP] = None if inner is None else run_messages.integer(inner, 1) or 0
        self.step = as_number(row[STEP])
        texts = []
        for name, value in row.items():
            number = _number(value)
            if number is not None:
                self._put(name, number)
            elif isinstance(value, (str, list)):
                texts.append((name, value))
        self.count += 1
        return texts

    def _put(self, name: str, value: float) -> None:
        if name not in self._rows:
            if len(self._rows) >= MAX_NAMES:
                self.left_out += 1
                return
            self._rows[name], self._values[name] = array("q"), array("d")
        if self.points >= MAX_POINTS:
            self.left_out += 1
            return
        self.points += 1
        self._rows[name].append(self.count)
        self._values[name].append(value)

    def columns(self) -> Columns:
        """Return the rows by column."""
        numbers = [
            Cells(name, np.array(rows, dtype=np.int64), np.array(self._values[name], dtype=float))
            for name, rows in self._rows.items()
        ]
        return Columns(numbers, np.arange(1, self.count + 1, dtype=np.int64))

    def warnings(self) -> list[str]:
        """Return in words what was left out."""
        return [f"{self.left_out} values were left out: there are too many"] * bool(self.left_out)


def _nested(items: Iterable[run_messages.Item]) -> dict[str, Any]:
    """Put the parts of a value together again: a histogram comes as its type, bins and counts."""
    whole: dict[str, Any] = {}
    for item in items:
        place = whole
        for key in item.path[:-1][:MAX_DEPTH]:
            below = place.setdefault(key, {})
            if not isinstance(below, dict):
                break
            place = below
        else:
            if item.path:
                place[item.path[-1]] = item.value
    return whole


def _spread(name: str, value: Any, row: dict[str, Any], depth: int) -> None:
    """Put plain values into a row under names joined by slashes."""
    if not isinstance(value, Mapping):
        row[name] = value
    elif value.get("_type") == "histogram":
        row[name] = _norm(value)
    elif "_type" not in value and depth < MAX_DEPTH:
        for key, below in value.items():
            _spread(f"{name}/{key}", below, row, depth + 1)


def _number(value: Any) -> float | None:
    """W&B writes a number that is not finite as a word."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 1000:
        return math.inf
    return as_number(value)


@np.errstate(all="ignore")
def _norm(histogram: Mapping[str, Any]) -> float | None:
    """Return the norm of what a histogram counts: `wandb.watch` logs gradients that way."""
    counts, edges = histogram.get("values"), histogram.get("bins")
    packed = histogram.get("packedBins")
    try:
        many = np.asarray(counts, dtype=float)
        if isinstance(packed, Mapping):
            edges = float(packed["min"]) + float(packed["size"]) * np.arange(len(many) + 1)
        bounds = np.asarray(edges, dtype=float)
        if many.ndim != 1 or bounds.shape != (len(many) + 1,):
            return None
        middles = (bounds[1:] + bounds[:-1]) / 2.0
        return float(np.sqrt(np.sum(many * middles**2)))
    except (TypeError, ValueError, KeyError, OverflowError):
        return None
