"""How a table is written: its delimiter, its header, and what its cells mean as numbers."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from traindx.model.metric_names import canonical, in_one_word, is_epoch, is_measured, is_step
from traindx.readers.columns import recognised, title

HEAD_LINES = 200  # enough to learn the layout
MAX_COLUMNS = 2000
SURE_COLUMNS = 200  # looked at to tell a header of metrics
_DELIMITERS = ("\t", ";", ",", "|")
MISSING = frozenset({"", "na", "n/a", "none", "null", "-", "--", "<na>", "nil", "no log"})
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+(?:[eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_DRESSED = re.compile(r"(?:tensor\(|np\.float\d+\(|\[|\()?\s*([^\s,()\[\]]+)\s*[,)\]].*", re.DOTALL)
_COLUMN_NAME = re.compile(r"[\w /.@:%()#+-]{0,80}")
_TRAINER_BAR = re.compile(r"\s*\[\s*\d+/\d+ [\d:]+(?:<[^\]]*)?, Epoch ")  # above its notebook table
_NO_LOG = re.compile(r"\bNo log\b")  # the Trainer's, before it has logged a training loss
# the Monitor of Gym and Stable-Baselines writes one row per episode
_MONITOR = {"r": "episode_reward", "l": "episode_length", "t": "time"}
_RULE = frozenset(" \t|:+=-")


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How a table is written: its delimiter, the names of its columns, the line of its header."""

    delimiter: str
    names: tuple[str, ...]
    header_line: int
    has_header: bool
    has_decimal_comma: bool
    numeric_share: float
    rows_seen: int
    labels_differ: bool


def learn(lines: Sequence[str], path: Path) -> TableLayout | None:
    """Learn how a table is written from its first lines, or say that it is none."""
    shown = [(i, line) for i, line in enumerate(lines[:HEAD_LINES], 1) if line.strip()]
    body = [(i, line) for i, line in shown if not is_remark(line)]
    for delimiter in _DELIMITERS if body else ():
        if any(delimiter in line for _, line in body[:3]):
            layout = _layout(shown, body, delimiter, path)
            if layout is not None:
                return layout
    if any("%|" in line for _, line in body):
        return None  # a console log with progress bars
    spaced = [_layout(shown, body, d, path) for d in (" ", "  ")] if body else []
    found = [layout for layout in spaced if layout is not None]
    # names of two words, as in "Step    Training Loss", make a header only where blanks are wide
    return next((layout for layout in found if layout.has_header), found[0] if found else None)


def is_remark(line: str) -> bool:
    """Tell whether a line is a comment, or the rule under a header."""
    if line.lstrip().startswith("#") or ("--" in line and set(line) <= _RULE):
        return True
    return _TRAINER_BAR.match(line) is not None


def _layout(
    shown: list[tuple[int, str]], body: list[tuple[int, str]], delimiter: str, path: Path
) -> TableLayout | None:
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
    if names[:2] == ("E", "#"):  # spaCy
        names = ("epoch", "step", *names[2:])
    if set(_MONITOR) <= set(names):
        names = tuple(_MONITOR.get(n, n) for n in names)
    if not _is_plausible(names, data, numeric, delimiter, width):
        return None
    if names and len(names) == width - 1:
        names = ("", *names)
    has_header = bool(names)
    names = names or _guess_names(data, comma, path)
    header_line = body[first][0] if is_header else body[first][0] - 1
    return TableLayout(
        delimiter, names[:MAX_COLUMNS], header_line, has_header, comma, numeric, len(data), differ
    )


def _width(cells: list[list[str]]) -> int:
    """Return how many cells a row has: as many as most, or as a header that leaves no doubt."""
    lengths = Counter(len(row) for row in cells)
    usual = lengths.most_common(1)[0][0]
    named = len(cells[0])
    first = cells[0][:SURE_COLUMNS]
    is_sure = any(is_step(c) or is_epoch(c) for c in first) and recognised(first)
    return named if is_sure and lengths[named] > 1 and usual != named + 1 else usual


def _is_plausible(
    names: Sequence[str], data: list[list[str]], numeric: float, delimiter: str, width: int
) -> bool:
    if not names:
        return bool(data) and numeric == 1.0
    if any(len(n) > 200 for n in names) or len(names) not in (width, width - 1):
        return False
    if not data:  # a run that died before its first row leaves a header only
        is_header = all(_COLUMN_NAME.fullmatch(n) for n in names) and bool(
            recognised(names[:SURE_COLUMNS])
        )
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
            if cell.strip().lower() in MISSING:
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
    if delimiter == " ":
        lines = [_NO_LOG.sub("none", in_one_word(x)) for x in lines]
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


def split_columns(lines: list[str], delimiter: str, width: int) -> list[Sequence[str]]:
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


def counter(cell: str, has_decimal_comma: bool) -> float | None:
    """Return a step or an epoch, also of the form ``3/100`` or ``Epoch 3``."""
    found = number(cell, has_decimal_comma)
    if found is None:
        match = re.fullmatch(r"\s*(?:epoch|step|iter\w*)?\s*[\[(]?(\d+)\s*(?:/\s*\d+)?[\])]?\s*",
                             cell, re.IGNORECASE)  # fmt: skip
        found = float(match[1]) if match else None
    return found
