"""Tables of metrics: CSV and its kin, with any column names, wide or long, whole or damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx.errors import UnreadableArtifact
from traindx.model.merging import resolve
from traindx.model.metric_names import is_epoch, is_step
from traindx.model.run import Floats, Ints, Run
from traindx.readers.columns import Cells, Columns, certain, is_key, recognised, to_series
from traindx.readers.formats.table.table_layout import (
    HEAD_LINES,
    MISSING,
    SURE_COLUMNS,
    TableLayout,
    counter,
    is_remark,
    learn,
    number,
    split_columns,
    split_rows,
)
from traindx.readers.formats.table.transposed import upright
from traindx.readers.text import LineBlocks, damage, decode, is_text
from traindx.registry import reader

MAX_TURNED = 8 << 20  # bytes of a table with a row per metric


def sniff(path: Path, head: bytes) -> float:
    """Say how sure it is that a file is a table of metrics rather than of data."""
    if not head.strip() or not is_text(head):
        return 0.0
    lines = decode(head).replace("\r\n", "\n").split("\n")
    if upright(lines) is not None or _is_long_and_upright(lines):
        return 0.9
    layout = learn(lines[:-1] if len(lines) > 2 and len(head) > 1000 else lines, path)
    if layout is None:
        return 0.0
    names = layout.names[:SURE_COLUMNS]
    measured = recognised(names)
    is_certain = bool(certain(names))
    has_clock = any(is_step(n) or is_epoch(n) for n in names)
    has_tags = any(is_key(n) for n in names)
    if not layout.has_header:
        return 0.55 if is_certain or has_clock else 0.12
    if layout.labels_differ and not has_clock:
        return 0.2  # one row per model or per sample: a summary or a data set
    if has_clock:
        return 0.95 if measured else 0.8 if has_tags else 0.6
    return 0.8 if is_certain else 0.2 if measured else 0.15


def _is_long_and_upright(lines: list[str]) -> bool:
    """Tell a table of which only the first rows were seen."""
    return len(lines) > 2 and upright(lines[:-1]) is not None


@reader("table", sniff)
def read(path: Path) -> Run:
    """Read every column of numbers as a series; its step and epoch columns are the coordinates."""
    if path.stat().st_size <= MAX_TURNED:
        turned = upright(decode(path.read_bytes()).replace("\r\n", "\n").split("\n"))
        if turned is not None:
            series = resolve(to_series(turned, path, "column"))
            return Run(name=path.stem, series=series, artifacts=(damage(path, "table", ())[0],))
    blocks = LineBlocks(path)
    rows: _Rows | None = None
    waiting: list[str] = []
    for first_line, lines in blocks:
        if rows is not None:
            rows.add(first_line, lines)
            continue
        waiting += lines
        layout = learn(waiting[:HEAD_LINES], path)
        if layout is not None:
            rows = _Rows(layout)
            rows.add(1, waiting)
        elif len(waiting) >= HEAD_LINES:
            break
    if rows is None:
        why = "it is empty" if not any(w.strip() for w in waiting) else "it holds no table"
        raise UnreadableArtifact(str(path), why, "a CSV file with a header and one row per step")
    warnings = [*rows.finish(blocks.ends_with_newline), *blocks.warnings()]
    series = resolve(to_series(rows.columns(), path, "line"))
    if not series and not warnings:
        warnings.append("no column of it is a metric")
    artifact, events = damage(path, "table", warnings)
    return Run(name=path.stem, series=series, artifacts=(artifact,), events=events)


class _Rows:
    """The rows of a table, gathered block by block into columns."""

    def __init__(self, layout: TableLayout) -> None:
        self.layout = layout
        self.width = len(layout.names)
        self.count = 0
        self.places: list[Ints] = []
        self.values: list[list[Floats]] = [[] for _ in layout.names]
        self.present: list[list[Ints]] = [[] for _ in layout.names]
        self.words = [0] * self.width
        self.texts: dict[int, list[str]] = {i: [] for i, n in enumerate(layout.names) if is_key(n)}
        self.clock = [i for i, n in enumerate(layout.names) if is_step(n) or is_epoch(n)]
        self.ragged: list[int] = []
        self.strange: list[int] = []

    def add(self, first_line: int, lines: list[str]) -> None:
        """Add a block of lines."""
        begun = max(0, self.layout.header_line + 1 - first_line)
        if not self._add_clean(first_line + begun, lines[begun:]):
            self._add_damaged(first_line + begun, lines[begun:])

    def _add_clean(self, first_line: int, lines: list[str]) -> bool:
        """Add a block without damage at once: all rows are whole and every step is a number."""
        columns = split_columns(lines, self.layout.delimiter, self.width)
        if not self.clock or not columns:
            return False
        try:
            for i in self.clock:
                np.fromiter(map(float, columns[i]), np.float64, len(lines))
        except ValueError:
            return False
        self._add_columns(columns, range(first_line, first_line + len(lines)))
        return True

    def _add_damaged(self, first_line: int, lines: list[str]) -> None:
        numbered = [
            (i, line)
            for i, line in enumerate(lines, first_line)
            if line and not line.isspace() and not is_remark(line)
        ]
        rows = split_rows([line for _, line in numbered], self.layout.delimiter)
        kept, places = [], []
        header = list(self.layout.names)
        for (place, _), row in zip(numbered, rows, strict=True):
            fitted = row if len(row) == self.width else self._fit(row, place)
            # a run that appends to the file of an earlier one writes the header again
            if fitted is None or [c.strip() for c in fitted] == header:
                continue
            kept.append(fitted)
            places.append(place)
        kept, places = self._without_strangers(kept, places)
        if kept:
            self._add_columns(list(zip(*kept, strict=True)), places)

    def _add_columns(self, columns: Sequence[Sequence[str]], places: Sequence[int]) -> None:
        for i, cells in enumerate(columns):
            if i in self.texts:
                self.texts[i] += [c.strip() for c in cells]
            values, present, words = self._numbers(cells, is_clock=i in self.clock)
            self.values[i].append(values[present])
            self.present[i].append(np.flatnonzero(present) + self.count)
            self.words[i] += words
        self.places.append(np.array(places, dtype=np.int64))
        self.count += len(places)

    def _fit(self, row: list[str], place: int) -> list[str] | None:
        while len(row) > self.width and not row[-1].strip():
            row = row[:-1]
        if len(row) == self.width:
            return row
        self.ragged.append(place)
        if len(row) > self.width:
            return row[: self.width]
        return row + [""] * (self.width - len(row)) if len(row) > 1 else None

    def _without_strangers(
        self, rows: list[list[str]], places: list[int]
    ) -> tuple[list[list[str]], list[int]]:
        """Drop the rows whose step is a word: a summary at the end, a message in between."""
        comma = self.layout.has_decimal_comma
        strange = {
            place
            for row, place in zip(rows, places, strict=True)
            for i in self.clock
            if row[i].strip().lower() not in MISSING and counter(row[i], comma) is None
        }
        if not strange or len(strange) > 0.5 * len(rows):
            return rows, places
        self.strange += sorted(strange)
        keep = [k for k, place in enumerate(places) if place not in strange]
        return [rows[k] for k in keep], [places[k] for k in keep]

    def _numbers(
        self, cells: Sequence[str], is_clock: bool
    ) -> tuple[Floats, NDArray[np.bool_], int]:
        """Return the numbers in some cells, which cells have one, and how many hold words."""
        count = len(cells)
        try:
            return np.fromiter(map(float, cells), np.float64, count), np.ones(count, bool), 0
        except ValueError:
            pass
        try:  # the same for a column with gaps
            values = np.fromiter(map(float, [c or "nan" for c in cells]), np.float64, count)
            return values, np.fromiter(map(bool, cells), bool, count), 0
        except ValueError:
            pass
        parse = counter if is_clock else number
        parsed = [parse(c, self.layout.has_decimal_comma) for c in cells]
        present = np.array([p is not None for p in parsed])
        words = sum(
            p is None and c.strip().lower() not in MISSING
            for c, p in zip(cells, parsed, strict=True)
        )
        return np.array([np.nan if p is None else p for p in parsed]), present, words

    def finish(self, ends_with_newline: bool) -> list[str]:
        """Return in words what was wrong with the rows."""
        said = []
        if not self.count:
            said.append("it has a header and no rows: the run ended before it wrote any")
        if self.ragged:
            cut = "" if ends_with_newline else "; the last line is cut off"
            said.append(f"{_lines(self.ragged)} do not have {self.width} cells{cut}")
        if self.strange:
            said.append(f"{_lines(self.strange)} have no step and were left out")
        for i, name in enumerate(self.layout.names):
            numbers = sum(map(len, self.values[i]))
            if 0 < self.words[i] <= numbers and i not in self.texts:
                said.append(f"{self.words[i]} cells of column {name!r} are not numbers")
        if not self.layout.has_header:
            named = ", ".join(self.layout.names[:6])
            said.append(f"it has no header; its columns are taken for {named}")
        return said

    def columns(self) -> Columns:
        """Return the columns of numbers, and the texts that say what a row is about."""
        none = np.empty(0, dtype=np.int64)
        numbers = []
        for i, name in enumerate(self.layout.names):
            values = np.concatenate([np.empty(0), *self.values[i]])
            # words in most cells make a column of text
            if len(values) and self.words[i] <= len(values):
                numbers.append(Cells(name, np.concatenate([none, *self.present[i]]), values))
        texts = {self.layout.names[i]: text for i, text in self.texts.items()}
        return Columns(numbers, np.concatenate([none, *self.places]), texts)


def _lines(places: list[int]) -> str:
    if len(places) == 1:
        return f"1 row (line {places[0]})"
    return f"{len(places)} rows (the first in line {places[0]})"
