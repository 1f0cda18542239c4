"""What the lines of a log counted and measured, series by series, in bounded memory.

A row of a track is one point: its line, its value, and the counters that hold there. A line without
a counter of its own inherits the one that was printed last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from traindx.model import Floats
from traindx.readers.console.plan import Plan

PLACE, VALUE, STEP, TOTAL, EPOCH, STEP_EPOCH = range(6)
MAX_POINTS = 200_000  # of a series; beyond this it is thinned
MAX_ROWS = 6_000_000  # of all series together, 48 bytes each
MIN_POINTS = 2_000  # of a series, however many there are
MAX_TRACKS = 4_000
MAX_NONFINITE = 0.1  # of the points that are kept


@dataclass(frozen=True, slots=True)
class Told:
    """What tells a track from another: who says it, in which kind of line, and its name there."""

    rank: int | None
    template: str
    name: str
    phase: str | None
    cell: int = -1


@dataclass(slots=True)
class Track:
    """The points of one metric in one kind of line."""

    told: Told
    plan: Plan
    chunks: list[Floats] = field(default_factory=list)
    count: int = 0
    seen: int = 0

    def add(self, rows: Floats, limit: int) -> None:
        """Append rows and thin them when they become too many."""
        self.chunks.append(rows)
        self.count += len(rows)
        self.seen += len(rows)
        if self.count > 2 * limit:
            self.chunks = [thin(self.rows(), limit)]
            self.count = len(self.chunks[0])

    def rows(self) -> Floats:
        """Return all rows in the order of their lines."""
        if not self.chunks:
            return np.empty((0, 6))
        rows = np.concatenate(self.chunks)
        if bool(np.any(np.diff(rows[:, PLACE]) < 0)):
            rows = rows[np.argsort(rows[:, PLACE], kind="stable")]
        self.chunks = [rows]
        return rows


def thin(rows: Floats, limit: int) -> Floats:
    """Keep the first, last, lowest and highest of each stretch, and what is not finite."""
    if len(rows) <= limit:
        return rows
    strange = np.flatnonzero(~np.isfinite(rows[:, VALUE]))
    allowed = max(2, int(MAX_NONFINITE * limit))
    if len(strange) > allowed:  # the onset matters, and that it lasted to the end
        strange = np.concatenate([strange[: allowed // 2], strange[-(allowed // 2) :]])
    finite = np.flatnonzero(np.isfinite(rows[:, VALUE]))
    buckets = max(1, (limit - len(strange)) // 4)
    span = rows[-1, PLACE] - rows[0, PLACE] + 1.0
    bucket = np.floor((rows[finite, PLACE] - rows[0, PLACE]) * (buckets / span))
    keep = [strange]
    for order in (np.arange(len(finite)), np.lexsort((rows[finite, VALUE], bucket))):
        changes = np.flatnonzero(np.diff(bucket[order])) if len(order) else order
        firsts = np.append(0, changes + 1)[: len(order)]
        lasts = np.append(changes, len(order) - 1)[: len(order)]
        keep += [finite[order[firsts]], finite[order[lasts]]]
    return rows[np.unique(np.concatenate(keep).astype(np.int64))]


@dataclass(slots=True)
class Clock:
    """The counters that hold at a line: the last ones printed at or before it."""

    places: Floats = field(default_factory=lambda: np.empty(0))
    state: Floats = field(default_factory=lambda: np.full((1, 4), np.nan))

    def wind(self, readings: Sequence[Floats]) -> None:
        """Take in the counters of a block: rows of place, step, total and epoch."""
        carried = self.state[-1:]
        if not readings:
            self.places, self.state = np.empty(0), carried
            return
        rows = np.concatenate(readings)
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        state = np.concatenate([carried, np.full((len(rows), 4), np.nan)])
        epoch = _carry(np.append(carried[0, 3], rows[:, 3]))
        has_step = ~np.isnan(rows[:, 1])
        state[1:, 0], state[1:, 1] = rows[:, 1], rows[:, 2]
        state[1:, 2] = epoch[1:]
        state[1:][~has_step] = np.nan
        last = np.maximum.accumulate(np.append(0, np.where(has_step, np.arange(1, len(state)), 0)))
        state = state[last]
        state[:, 3] = epoch
        self.places, self.state = rows[:, 0], state

    def at(self, places: Floats) -> Floats:
        """Return step, total, the epoch of that step, and the epoch, at some lines."""
        return self.state[np.searchsorted(self.places, places, side="right")]


def _carry(values: Floats) -> Floats:
    """Fill what is missing with the last value before it."""
    known = np.where(np.isnan(values), 0, np.arange(len(values)))
    return values[np.maximum.accumulate(known)]


class Ledger:
    """All tracks of a log and the clock that runs through it."""

    def __init__(self) -> None:
        self.tracks: dict[Told, Track] = {}
        self.clock = Clock()
        self.refused = 0
        self._known: dict[tuple[int, tuple[bytes, ...]], list[Track | None]] = {}
        self._pending: dict[tuple[Plan, tuple[bytes, ...]], list[Floats]] = {}

    def post(self, plan: Plan, identity: tuple[bytes, ...], rows: Floats) -> None:
        """Note lines of a kind: rows of place, step, total, epoch and the values."""
        self._pending.setdefault((plan, identity), []).append(rows)

    def settle(self) -> None:
        """Wind the clock through a block and give its rows to their tracks."""
        merged = {key: np.concatenate(rows) for key, rows in self._pending.items()}
        self._pending.clear()
        readings = []
        for (plan, _), rows in merged.items():
            if plan.step is not None or plan.epoch is not None:
                reading = rows[:, :4]
                if plan.is_label or not plan.sets_clock:
                    reading = reading.copy()
                    reading[:, 1:3] = np.nan
                readings.append(reading)
        self.clock.wind(readings)
        for (plan, identity), rows in merged.items():
            if plan.fields:
                self._distribute(plan, identity, rows)

    def _distribute(self, plan: Plan, identity: tuple[bytes, ...], rows: Floats) -> None:
        filled = np.empty((len(rows), 6))
        now = self.clock.at(rows[:, 0])
        filled[:, PLACE] = rows[:, 0]
        filled[:, STEP : TOTAL + 1] = now[:, :2] if plan.step is None else rows[:, 1:3]
        filled[:, EPOCH] = now[:, 3] if plan.epoch is None else rows[:, 3]
        filled[:, STEP_EPOCH] = now[:, 2] if plan.step is None else filled[:, EPOCH]
        limit = self.limit
        for i, track in enumerate(self._tracks(plan, identity)):
            if track is not None:
                own = filled.copy()
                own[:, VALUE] = rows[:, 4 + i]
                track.add(own, limit)

    @property
    def limit(self) -> int:
        """How many points a series may have."""
        return max(MIN_POINTS, min(MAX_POINTS, MAX_ROWS // (2 * max(1, len(self.tracks)))))

    def _tracks(self, plan: Plan, identity: tuple[bytes, ...]) -> list[Track | None]:
        key = (id(plan), identity)
        if key not in self._known:
            self._known[key] = [self._open(plan, told) for told in _tellings(plan, identity)]
        return self._known[key]

    def _open(self, plan: Plan, told: Told) -> Track | None:
        track = self.tracks.get(told)
        if track is None:
            if len(self.tracks) >= MAX_TRACKS:
                self.refused += 1
                return None
            track = self.tracks[told] = Track(told, plan)
        return track


def _tellings(plan: Plan, identity: tuple[bytes, ...]) -> Iterable[Told]:
    """Return what each field of a line of this kind tells of, its digits filled in."""
    rank = int(b"".join(identity[-len(plan.rank.whole) :])) if plan.rank else None
    at = 0
    used: dict[tuple[str, str | None], int] = {}
    for i, made in enumerate(plan.fields):
        name = made.spelled(identity[at : at + len(made.runs)])
        at += len(made.runs)
        again = used[name, made.phase] = used.get((name, made.phase), -1) + 1
        cell = i if plan.cells else (again or -1)
        yield Told(rank, plan.template, name, made.phase, cell)
