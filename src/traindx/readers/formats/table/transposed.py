"""Tables that lie on their side: one row per metric, one column per epoch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traindx.readers.columns import Cells, Columns, certain
from traindx.readers.formats.table.table_layout import number, split_rows

MAX_ROWS = 200  # metrics; more of them are data
MAX_WIDTH = 100_000
_DELIMITERS = (",", ";", "\t")


def upright(lines: Sequence[str]) -> Columns | None:
    """Return the columns of a table whose header counts and whose rows are named, else nothing.

    pandas writes ``,0,1,2`` and then ``loss,0.9,0.7,0.6``.
    """
    told = [line for line in lines if line.strip()]
    if not 1 < len(told) <= MAX_ROWS:
        return None
    for delimiter in _DELIMITERS:
        if delimiter in told[0]:
            rows = split_rows(told, delimiter)
            width = len(rows[0])
            is_whole = 2 < width <= MAX_WIDTH and {len(r) for r in rows} == {width}
            return _columns(rows) if is_whole else None
    return None


def _columns(rows: list[list[str]]) -> Columns | None:
    counts = [number(c) for c in rows[0][1:]]
    first = counts[0]
    if first not in (0.0, 1.0) or counts != [first + i for i in range(len(counts))]:
        return None
    names = [row[0].strip() for row in rows[1:]]
    if not certain(names) or any(number(n) is not None for n in names):
        return None
    found = [Cells("epoch", np.arange(len(counts), dtype=np.int64), np.array(counts, float))]
    for name, row in zip(names, rows[1:], strict=True):
        values = [number(c) for c in row[1:]]
        known = np.array([v is not None for v in values])
        numbers = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
        at = np.flatnonzero(known).astype(np.int64)
        if len(at):
            found.append(Cells(name, at, numbers[known]))
    return Columns(found, np.arange(1, len(counts) + 1, dtype=np.int64))
