"""Tables: a row of names, and rows of numbers under it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from traindx.model.run import Floats
from traindx.readers.columns import scores_of_validation
from traindx.readers.formats.console.lines import DETECTION_LOSSES, is_detection
from traindx.readers.formats.console.notes import LogNotes
from traindx.readers.formats.console.timeline import Telling
from traindx.readers.formats.console.tracks import (
    EPOCH,
    PLACE,
    STEP,
    STEP_EPOCH,
    TOTAL,
    VALUE,
    Ledger,
    MetricTrack,
)
from traindx.readers.formats.console.vocabulary import IDENTIFIERS, counts

_SHORT = {"p": "precision", "r": "recall", "box(p": "precision", "mask(p": "precision mask"}


@dataclass(slots=True)
class _Grid:
    """The cells of the rows of one kind, each a track of its own."""

    cells: int
    tracks: dict[int, MetricTrack]


def tellings_of_tables(ledger: Ledger, notes: LogNotes) -> list[Telling]:
    """Return the columns of tables as what they are called in the header above them."""
    grids: dict[tuple[str, int | None], _Grid] = {}
    for track in ledger.tracks():
        told = track.told
        if track.plan.cells:
            grid = grids.setdefault((told.template, told.rank), _Grid(track.plan.cells, {}))
            # the first cell may be a word such as "all"
            grid.tracks[int(told.name[1:])] = track
    found: list[Telling] = []
    for grid in grids.values():
        for columns, start, end in _spans(notes, grid.cells, is_labelled=0 not in grid.tracks):
            found += _columns(grid, columns, start, end)
    return _with_epochs(found)


def _with_epochs(tellings: list[Telling]) -> list[Telling]:
    """Give a table without an epoch the one that the table above it counts."""
    counted = [t.rows[:, [PLACE, EPOCH]] for t in tellings if t.has_epoch and len(t.rows)]
    if not counted:
        return tellings
    clock = np.concatenate(counted)
    clock = clock[np.argsort(clock[:, 0], kind="stable")]
    filled = []
    for telling in tellings:
        rows = telling.rows
        if (
            not telling.has_epoch
            and not telling.has_step
            and bool(np.all(np.isnan(rows[:, EPOCH])))
        ):
            rows = rows.copy()
            at = np.searchsorted(clock[:, 0], rows[:, PLACE], side="right") - 1
            rows[:, EPOCH] = np.where(at >= 0, clock[np.maximum(at, 0), 1], np.nan)
        filled.append(replace(telling, rows=rows))
    return filled


def _spans(
    notes: LogNotes, cells: int, *, is_labelled: bool
) -> Iterator[tuple[tuple[str, ...], float, float]]:
    """Yield the headers of as many cells, and the lines for which they hold.

    A row that begins with a word is under no header that begins with a counter.
    """
    fitting = [
        (place, columns)
        for place, columns in notes.headers
        if len(columns) == cells
        and not (is_labelled and counts([columns[0]], has_total=True) is not None)
    ]
    for i, (place, columns) in enumerate(fitting):
        end = fitting[i + 1][0] if i + 1 < len(fitting) else np.inf
        yield columns, place, end


def _columns(grid: _Grid, columns: tuple[str, ...], start: float, end: float) -> Iterator[Telling]:
    counters: dict[str, Floats] = {}
    parts: dict[int, Floats] = {}
    for i, track in grid.tracks.items():
        rows = track.rows
        under = rows[(rows[:, PLACE] > start) & (rows[:, PLACE] < end)]
        kind = counts([columns[i]], has_total=True)
        if kind is not None and kind not in counters:
            counters[kind] = under
        else:
            parts[i] = under
    is_evaluation = columns[0].lower() == "class"
    held_out = scores_of_validation(columns)
    for i, rows in parts.items():
        name = _SHORT.get(columns[i].lower(), columns[i])
        if i and is_detection(columns) and name.lower() in DETECTION_LOSSES:
            name = "loss" if name.lower() == "total" else f"{name}_loss"
        if not len(rows) or name.lower() in IDENTIFIERS:
            continue
        track = grid.tracks[i]
        phase = "val" if is_evaluation or columns[i] in held_out else None
        # the header may be printed again and again; its rows are one series
        template = f"table {' '.join(columns)}"
        told = replace(track.told, name=name, phase=phase, template=template)
        counted = _counted(rows, counters)
        has_step = track.plan.step is not None or "step" in counters
        yield Telling(told, counted, has_step, "epoch" in counters, track.plan.is_bar, len(rows))


def _counted(rows: Floats, counters: dict[str, Floats]) -> Floats:
    rows = rows.copy()
    for kind, of in counters.items():
        _, at, where = np.intersect1d(rows[:, PLACE], of[:, PLACE], return_indices=True)
        if kind == "epoch":
            rows[:, EPOCH] = np.nan
            rows[at, EPOCH] = of[where, VALUE]
            rows[:, STEP_EPOCH] = rows[:, EPOCH]
        else:
            rows[:, STEP : TOTAL + 1] = np.nan
            rows[at, STEP] = of[where, VALUE]
    return rows
