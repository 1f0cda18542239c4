"""Tables of metrics: CSV and its kin, with any column names, wide or long, whole or damaged."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from traindx.assembly import resolve
from traindx.errors import UnreadableArtifact
from traindx.model import Floats, Ints, Run
from traindx.names import canonical, is_epoch, is_measured, is_step
from traindx.readers.columns import Cells, Columns, certain, is_key, recognised, title, to_series
from traindx.readers.text import LineBlocks, damage, decode, is_text
from traindx.registry import reader

HEAD_LINES = 200  # enough to learn the layout
MAX_COLUMNS = 2000
_DELIMITERS = ("\t", ";", ",", "|")
_MISSING = frozenset({"", "na", "n/a", "none", "null", "-", "--", "<na>", "nil"})
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_DRESSED = re.compile(r"(?:tensor\(|np\.float\d+\(|\[|\()?\s*([^\s,()\[\]]+)\s*[,)\]].*", re.DOTALL)
_COLUMN_NAME = re.compile(r"[\w /.@:%()#+-]{0,80}")
_RULE = re.compile(r"[\s|:+=-]*-{2,}[\s|:+=-]*")


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is written: its delimiter, the names of its columns, the line of its header."""

    delimiter: str
    names: tuple[str, ...]
    header_line: int
    has_header: bool
    has_decimal_comma: bool
    numeric_share: float
    rows_seen: int
    labels_differ: bool


def sniff(path: Path, head: bytes) -> float:
    """Say how sure it is that a file is a table of metrics rather than of data."""
    if not head.strip() or not is_text(head):
        return 0.0
    lines = decode(head).replace("\r\n", "\n").split("\n")
    layout = _learn(lines[:-1] if len(lines) > 2 and len(head) > 1000 else lines, path)
    if layout is None:
        return 0.0
    measured = recognised(layout.names)
    is_certain = bool(certain(layout.names))
    has_clock = any(is_step(n) or is_epoch(n) for n in layout.names)
    has_tags = sum(is_key(n) for n in layout.names) > 0
    if not layout.has_header:
        return 0.55 if is_certain or has_clock else 0.12
    if layout.labels_differ and not has_clock:
        return 0.2  # one row per model or per sample: a summary or a data set
    if has_clock:
        return 0.95 if measured else 0.8 if has_tags else 0.6
    return 0.8 if is_certain else 0.2 if measured else 0.15


@reader("table", sniff)
def read(path: Path) -> Run:
    """Read every column of numbers as a series; its step and epoch columns are the coordinates."""
    blocks = LineBlocks(path)
    rows: _Rows | None = None
    waiting: list[str] = []
    for first_line, lines in blocks:
        if rows is not None:
            rows.add(first_line, lines)
            continue
        waiting += lines
        layout = _learn(waiting[:HEAD_LINES], path)
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


def _learn(lines: Sequence[str], path: Path) -> Layout | None:
    """Learn how a table is written from its first lines, or say that it is none."""
    shown = [(i, line) for i, line in enumerate(lines[:HEAD_LINES], 1) if line.strip()]
    body = [(i, line) for i, line in shown if not _is_remark(line)]
    for delimiter in _DELIMITERS if body else ():
        if any(delimiter in line for _, line in body[:3]):
            layout = _layout(shown, body, delimiter, path)
            if layout is not None:
                return layout
    for delimiter in (" ", "  ") if body else ():
        layout = _layout(shown, body, delimiter, path)
        if layout is not None:
            return layout
    return None


def _is_remark(line: str) -> bool:
    return line.lstrip().startswith("#") or _RULE.fullmatch(line) is not None


def _layout(
    shown: list[tuple[int, str]], body: list[tuple[int, str]], delimiter: str, path: Path
) -> Layout | None:
    cells = split_rows([line for _, line in body], delimiter)
    width = _width(cells)
    if width < 2 and delimiter != " ":
        return None
    # rows may be one longer than their header, which leaves out the name of the index
    first = next((k for k, row in enumerate(cells) if len(row) in (width, width - 1)), 0)
    comma = delimiter != "," and _has_decimal_comma(cells[first + 1 :])
    remark = _header_in_remark(shown, body[first][0], delimiter, width)
    is_header = remark is None and _is_header(cells, first, comma)
    data = [row for row in cells[first + is_header :] if len(row) == width]
    numeric, differ = _content(data, comma)
    names = remark or (tuple(c.strip() for c in cells[first]) if is_header else ())
    if not _is_plausible(names, data, numeric, delimiter, width):
        return None
    if names and len(names) == width - 1:
        names = ("", *names)
    has_header = bool(names)
    names = names or _guess_names(data, comma, path)
    header_line = body[first][0] if is_header else body[first][0] - 1
    return Layout(
        delimiter, names[:MAX_COLUMNS], header_line, has_header, comma, numeric, len(data), differ
    )


def _width(cells: list[list[str]]) -> int:
    """Return how many cells a row has: as many as most, or as a header that leaves no doubt."""
    lengths = Counter(len(row) for row in cells)
    usual = lengths.most_common(1)[0][0]
    named = len(cells[0])
    is_sure = recognised(cells[0]) and any(is_step(c) or is_epoch(c) for c in cells[0])
    return named if is_sure and lengths[named] > 1 and usual != named + 1 else usual


def _is_plausible(
    names: Sequence[str], data: list[list[str]], numeric: float, delimiter: str, width: int
) -> bool:
    if not names:
        return bool(data) and numeric == 1.0
    if any(len(n) > 200 for n in names) or len(names) not in (width, width - 1):
        return False
    if not data:  # a run that died before its first row leaves a header only
        is_header = all(_COLUMN_NAME.fullmatch(n) for n in names) and bool(recognised(names))
        return len(names) > 1 and delimiter.strip() != "" and is_header
    return numeric >= (0.8 if delimiter.startswith(" ") or width == 1 else 0.3)


def _has_decimal_comma(rows: Sequence[Sequence[str]]) -> bool:
    cells = [c.strip() for row in rows[:50] for c in row]
    with_comma = sum(_DECIMAL_COMMA.fullmatch(c) is not None for c in cells)
    with_point = sum("." in c for c in cells)
    return with_comma > with_point


def _header_in_remark(
    shown: list[tuple[int, str]], data_line: int, delimiter: str, width: int
) -> tuple[str, ...] | None:
    """``np.savetxt`` writes its header behind a ``#``."""
    before = [line for i, line in shown if i < data_line and line.lstrip().startswith("#")]
    if not before:
        return None
    row = split_rows([before[-1].lstrip().lstrip("#")], delimiter)[0]
    names = tuple(c.strip() for c in row)
    is_named = len(names) == width and all(number(n) is None for n in names)
    return names if is_named and all(names) else None


def _is_header(cells: list[list[str]], first: int, comma: bool) -> bool:
    """Tell whether the first row names the columns: it has fewer numbers than the rows below."""
    here = sum(number(c, comma) is not None for c in cells[first])
    if here == len(cells[first]):
        return False
    below = [
        sum(number(c, comma) is not None for c in row) for row in cells[first + 1 : first + 21]
    ]
    return here == 0 if not below else here < 0.5 * float(np.median(below)) or here == 0


def _content(data: list[list[str]], comma: bool) -> tuple[float, bool]:
    """Return the share of cells that are numbers, and whether a column of text labels each row."""
    filled = numeric = 0
    labels: dict[int, set[str]] = {}
    for row in data:
        for i, cell in enumerate(row[:MAX_COLUMNS]):
            if cell.strip().lower() in _MISSING:
                continue
            filled += 1
            if number(cell, comma) is not None:
                numeric += 1
            else:
                labels.setdefault(i, set()).add(cell)
    differ = any(len(seen) > 0.9 * len(data) for seen in labels.values()) and len(data) > 1
    return (numeric / filled if filled else 0.0), differ


def _guess_names(data: list[list[str]], comma: bool, path: Path) -> tuple[str, ...]:
    """Name columns that have no header: by the file if it says, as a step if it counts."""
    width = len(data[0])
    names = [f"column_{i + 1}" for i in range(width)]
    own = title(path) if is_measured(canonical(title(path))) else None
    counts = [number(row[0], comma) or 0.0 for row in data]
    strides = {b - a for a, b in pairwise(counts)}
    is_counter = len(data) > 2 and len(strides) == 1 and strides.pop() > 0 and counts[0] >= 0
    if width > 1 and is_counter and all(c == int(c) for c in counts):
        names[0] = "step"
        if width == 2:
            names[1] = own or ("loss" if _falls_like_a_loss(data, comma) else names[1])
    elif width == 1 and own:
        names[0] = own
    return tuple(names)


def _falls_like_a_loss(data: list[list[str]], comma: bool) -> bool:
    values = [v for row in data if (v := number(row[1], comma)) is not None]
    return len(values) > 2 and min(values) >= 0 and any(v != int(v) for v in values if v - v == 0)


def split_rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Split lines into cells, one row per line whatever the quotes in it do."""
    if delimiter.startswith(" "):
        return [re.split(r"\s{2,}", x.strip()) if delimiter == "  " else x.split() for x in lines]
    if delimiter == "|":
        return [x.strip().strip("|").split("|") for x in lines]
    if not any('"' in line for line in lines):
        return [line.split(delimiter) for line in lines]
    try:
        rows = list(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        rows = []
    if len(rows) == len(lines):
        return rows
    return [_split_alone(line, delimiter) for line in lines]  # an open quote would eat what follows


def _split_columns(lines: list[str], delimiter: str, width: int) -> list[Sequence[str]]:
    """Split lines into columns if every line is whole, else return nothing."""
    text = delimiter.join(lines)
    if '"' in text or delimiter in {" ", "  ", "|"}:
        rows = split_rows(lines, delimiter)
        is_whole = set(map(len, rows)) == {width}
        return list(zip(*rows, strict=True)) if is_whole else []
    if {line.count(delimiter) for line in lines} != {width - 1}:
        return []
    cells = text.split(delimiter)
    return [cells[i::width] for i in range(width)]


def _split_alone(line: str, delimiter: str) -> list[str]:
    try:
        rows = list(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        rows = []
    return rows[0] if len(rows) == 1 and line.count('"') % 2 == 0 else line.split(delimiter)


def number(cell: str, has_decimal_comma: bool = False) -> float | None:
    """Return a cell as a number: with ``%``, thousands, a decimal comma, or dressed as a tensor."""
    text = cell.strip().strip("\"'").strip()
    if has_decimal_comma and "," in text:
        text = text.replace(".", "").replace(",", ".")
    try:
        return float(text)
    except ValueError:
        pass
    if text.endswith("%"):
        return number(text[:-1])
    if _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    dressed = _DRESSED.fullmatch(text) if text[:1] in "tn[(" else None
    if dressed and dressed[1] != text:
        return number(dressed[1])
    return None


def _counter(cell: str, has_decimal_comma: bool) -> float | None:
    """Return a step or an epoch, also of the form ``3/100`` or ``Epoch 3``."""
    found = number(cell, has_decimal_comma)
    if found is None:
        match = re.fullmatch(r"\s*(?:epoch|step|iter\w*)?\s*[\[(]?(\d+)\s*(?:/\s*\d+)?[\])]?\s*",
                             cell, re.IGNORECASE)  # fmt: skip
        found = float(match[1]) if match else None
    return found


class _Rows:
    """The rows of a table, gathered block by block into columns."""

    def __init__(self, layout: Layout) -> None:
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
        columns = _split_columns(lines, self.layout.delimiter, self.width)
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
            if line and not line.isspace() and not _is_remark(line)
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
            if row[i].strip().lower() not in _MISSING and _counter(row[i], comma) is None
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
        parse = _counter if is_clock else number
        parsed = [parse(c, self.layout.has_decimal_comma) for c in cells]
        present = np.array([p is not None for p in parsed])
        words = sum(
            p is None and c.strip().lower() not in _MISSING
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
