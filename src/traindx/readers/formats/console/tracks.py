"""What the lines of a log counted and measured, series by series, in bounded memory.

A row of a track is one point: its line, its value, and the counters that hold there. A line without
a counter of its own inherits the one that was printed last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from traindx.model.run import Floats, Ints
from traindx.readers.formats.console.plan import LinePlan

# the columns of a sheet; the values of its fields follow
PLACE, STEP, TOTAL, EPOCH, STEP_EPOCH, VALUES = range(6)
VALUE = VALUES  # of a track, which is a sheet with one field
MAX_POINTS = 150_000  # of a series; beyond this it is thinned
MAX_CELLS = 40_000_000  # of all sheets together, 8 bytes each
MIN_POINTS = 2_000  # of a series, however many there are
MAX_SHEETS = 4_000


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """What tells a series from another: who says it, in which kind of line, and its name there."""

    rank: int | None
    template: str
    name: str
    phase: str | None
    is_percent: bool = False


@dataclass(slots=True)
class MetricTrack:
    """The points of one metric in one kind of line."""

    told: SeriesKey
    plan: LinePlan
    rows: Floats
    seen: int


@dataclass(slots=True)
class Sheet:
    """The points of all metrics of one kind of line."""

    told: tuple[SeriesKey, ...]
    plan: LinePlan
    chunks: list[Floats] = field(default_factory=list)
    count: int = 0
    seen: int = 0
    stretch: int = 0  # rows of which only the extremes are kept; 0 keeps everything

    def add(self, rows: Floats, limit: int) -> None:
        """Append rows, thinned like those before; if there are too many, thin all of them more."""
        self.seen += len(rows)
        if self.stretch:
            rows = thin(rows, self.stretch)
        self.chunks.append(rows)
        self.count += len(rows)
        self._trim(limit)

    def _trim(self, limit: int) -> None:
        kept = 2 + 2 * len(self.told)  # of every stretch, at most
        while self.count > max(limit, 4 * kept):
            self.chunks = [thin(self.rows(), 2 * kept)]
            self.count = len(self.chunks[0])
            self.stretch = 2 * (self.stretch or kept)

    def join(self, rows: Floats, later: Sheet, limit: int) -> None:
        """Append the rows of the same sheet of a later part of the log, which may be thinned."""
        self.chunks.append(rows)
        self.count += len(rows)
        self.seen += later.seen
        self.stretch = max(self.stretch, later.stretch)
        self._trim(limit)

    def rows(self) -> Floats:
        """Return all rows in the order of their lines."""
        rows = np.concatenate(self.chunks)
        if bool(np.any(np.diff(rows[:, PLACE]) < 0)):
            rows = rows[np.argsort(rows[:, PLACE], kind="stable")]
        self.chunks = [rows]
        return rows

    def tracks(self) -> Iterator[MetricTrack]:
        """Yield the metrics one by one."""
        rows = self.rows()
        for i, told in enumerate(self.told):
            own = np.column_stack([rows[:, :VALUES], rows[:, VALUES + i]])
            yield MetricTrack(told, self.plan, own, self.seen)


def thin(rows: Floats, stretch: int) -> Floats:
    """Keep of so many rows the first, last, lowest and highest, and where NaN and Inf begin."""
    whole = len(rows) - len(rows) % stretch
    keep = np.zeros(len(rows), dtype=bool)
    keep[::stretch] = keep[stretch - 1 :: stretch] = keep[-1:] = True
    for column in range(VALUES, rows.shape[1]):
        values = np.ascontiguousarray(rows[:, column])
        strange = ~np.isfinite(values)
        is_strange = bool(strange.any())
        for least, never in ((np.argmin, np.inf), (np.argmax, -np.inf)):
            ordinary = np.where(strange, never, values) if is_strange else values
            at = least(ordinary[:whole].reshape(-1, stretch), axis=1)
            keep[at + np.arange(0, whole, stretch)] = True
            if whole < len(rows):
                keep[whole + int(least(ordinary[whole:]))] = True
        if is_strange:
            turns = strange[1:] != strange[:-1]
            keep[1:] |= turns
            keep[:-1] |= turns
    return rows[keep]


@dataclass(frozen=True, slots=True)
class ClockReading:
    """What lines of one kind say about the time, in the order of the lines."""

    places: Floats
    steps: Floats | None
    totals: Floats
    epochs: Floats | None


class LineClock:
    """The counters that hold at a line: the last ones printed at or before it."""

    def __init__(self) -> None:
        self._readings: Sequence[ClockReading] = ()
        self._before = np.full(4, np.nan)

    def wind(self, readings: Sequence[ClockReading]) -> None:
        """Go on to the next block, given what its lines say."""
        self._before = self.at(np.array([np.inf]))[0]
        self._readings = readings

    def after(self, before: Floats) -> LineClock:
        """Return the clock of a part of a log, given what holds where the part begins."""
        clock = LineClock()
        clock._before = continued(self.at(np.array([np.inf]))[0], before)
        return clock

    def at(self, places: Floats) -> Floats:
        """Return step, total, the epoch of that step, and the epoch, at some lines."""
        found = np.tile(self._before, (len(places), 1))
        latest = np.full(len(places), -np.inf)
        for reading in self._readings:
            if reading.steps is not None:
                i, at = _last_before(reading.places, places, latest)
                latest[i] = reading.places[at]
                found[i, 0], found[i, 1] = reading.steps[at], reading.totals[at]
        found[:, 3] = self._epochs(places)
        is_new = latest > -np.inf
        found[is_new, 2] = self._epochs(latest[is_new])
        return found

    def _epochs(self, places: Floats) -> Floats:
        epochs = np.full(len(places), self._before[3])
        latest = np.full(len(places), -np.inf)
        for reading in self._readings:
            if reading.epochs is not None:
                i, at = _last_before(reading.places, places, latest)
                latest[i] = reading.places[at]
                epochs[i] = reading.epochs[at]
        return epochs


def _last_before(told: Floats, places: Floats, after: Floats) -> tuple[Ints, Ints]:
    """Return which places have a telling at or before them that is later than known, and which."""
    at = np.searchsorted(told, places, side="right") - 1
    i = np.flatnonzero((at >= 0) & (told[np.maximum(at, 0)] > after))
    return i, at[i]


class Ledger:
    """All sheets of a log and the clock that runs through it."""

    def __init__(self) -> None:
        self.sheets: dict[tuple[SeriesKey, ...], Sheet] = {}
        self.clock = LineClock()
        self.refused = 0
        self.announced: list[Floats] = []  # steps that have a line of their own
        self._announced = 0
        self._cells = 0
        self._known: dict[tuple[LinePlan, tuple[bytes, ...]], Sheet | None] = {}
        self._pending: dict[tuple[LinePlan, tuple[bytes, ...]], list[Floats]] = {}

    def tracks(self) -> Iterator[MetricTrack]:
        """Yield every metric of every kind of line."""
        for sheet in self.sheets.values():
            yield from sheet.tracks()

    def post(self, plan: LinePlan, identity: tuple[bytes, ...], rows: Floats) -> None:
        """Note lines of a kind, as rows of a sheet; what they do not count is NaN."""
        self._pending.setdefault((plan, identity), []).append(rows)

    def settle(self) -> None:
        """Wind the clock through a block and give its rows to their sheets."""
        merged = {key: _in_order(rows) for key, rows in self._pending.items()}
        self._pending.clear()
        self.clock.wind([self._reading(plan, rows) for (plan, _), rows in merged.items()])
        for (plan, identity), rows in merged.items():
            sheet = self._sheet(plan, identity) if plan.fields else None
            if sheet is not None:
                self._inherit(plan, rows)
                sheet.add(rows, self.limit)

    def _reading(self, plan: LinePlan, rows: Floats) -> ClockReading:
        """Return what lines say about the time."""
        if not plan.fields and plan.step is not None and self._announced < MAX_POINTS:
            self.announced.append(rows[:, [PLACE, STEP]])
            self._announced += len(rows)
        has_step = plan.step is not None and plan.sets_clock and not plan.is_label
        places = rows[:, PLACE].copy() if has_step or plan.epoch is not None else rows[:0, PLACE]
        return ClockReading(
            places,
            rows[:, STEP].copy() if has_step else None,
            rows[:, TOTAL].copy() if has_step else places,
            rows[:, EPOCH].copy() if plan.epoch is not None else None,
        )

    def _inherit(self, plan: LinePlan, rows: Floats) -> None:
        """Fill in the counters that lines do not have themselves."""
        if plan.step is None or plan.epoch is None:
            now = self.clock.at(rows[:, PLACE])
            if plan.epoch is None:
                rows[:, EPOCH] = now[:, 3]
            if plan.step is None:
                rows[:, STEP : TOTAL + 1] = now[:, :2]
                rows[:, STEP_EPOCH] = now[:, 2]
                return
        rows[:, STEP_EPOCH] = rows[:, EPOCH]

    @property
    def limit(self) -> int:
        """How many points a series may have."""
        return max(MIN_POINTS, min(MAX_POINTS, MAX_CELLS // max(1, self._cells)))

    def forget(self) -> None:
        """Let go of what only reading on would need."""
        self._known.clear()

    def append(self, later: Ledger, lines: int) -> None:
        """Add what was read of the part of the log that follows, so many lines after its start."""
        now = self.clock.at(np.array([np.inf]))[0]
        for told, sheet in later.sheets.items():
            rows = sheet.rows()
            rows[:, PLACE] += lines
            _continue(rows, now)
            own = self.sheets.setdefault(told, Sheet(told, sheet.plan))
            own.join(rows, sheet, self.limit)
        self._cells = sum(VALUES + len(told) for told in self.sheets)
        self.announced += [rows + np.array([lines, 0.0]) for rows in later.announced]
        self.refused += later.refused
        self.clock = later.clock.after(now)

    def _sheet(self, plan: LinePlan, identity: tuple[bytes, ...]) -> Sheet | None:
        key = (plan, identity)
        if key not in self._known:
            told = tuple(_tellings(plan, identity))
            sheet = self.sheets.get(told)
            if sheet is None and len(self.sheets) < MAX_SHEETS:
                sheet = self.sheets[told] = Sheet(told, plan)
                self._cells += VALUES + len(told)
            self.refused += sheet is None
            self._known[key] = sheet
        return self._known[key]


def _continue(rows: Floats, now: Floats) -> None:
    """Fill in the counters that were printed before the part that these rows are from."""
    lacks_step = np.isnan(rows[:, STEP])
    rows[lacks_step, STEP], rows[lacks_step, TOTAL] = now[0], now[1]
    rows[lacks_step, STEP_EPOCH] = now[2]
    rows[np.isnan(rows[:, EPOCH]), EPOCH] = now[3]
    rows[np.isnan(rows[:, STEP_EPOCH]) & ~lacks_step, STEP_EPOCH] = now[3]


def continued(counters: Floats, now: Floats) -> Floats:
    """Fill in counters of a line (step, total, the step's epoch, the epoch) in the same way."""
    row = np.array([[0.0, counters[0], counters[1], counters[3], counters[2]]])
    _continue(row, now)
    return row[0, [STEP, TOTAL, STEP_EPOCH, EPOCH]]


def _in_order(chunks: list[Floats]) -> Floats:
    if len(chunks) == 1:
        return chunks[0]
    rows = np.concatenate(chunks)
    return rows[np.argsort(rows[:, PLACE], kind="stable")]


def _tellings(plan: LinePlan, identity: tuple[bytes, ...]) -> Iterator[SeriesKey]:
    """Yield what each field of a line of this kind tells of, its digits filled in."""
    rank = int(b"".join(identity[-len(plan.rank.whole) :])) if plan.rank else None
    at = 0
    for made in plan.fields:
        name = made.spelled(identity[at : at + len(made.runs)])
        at += len(made.runs)
        yield SeriesKey(rank, plan.template, name, made.phase, made.is_percent)
