"""The points of every tag, thinned where there are too many.

Thinning keeps what a diagnosis looks for: of every stretch of points the lowest, the highest, and
the first and last that are no numbers; and the first and last point of all.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traindx.model.run import Floats, Ints

MAX_POINTS = 200_000  # per tag
MAX_TOTAL = 20_000_000  # of a file: 640 MB
MAX_TAGS = 20_000


class TagTrack:
    """The points of one tag in the order of the file."""

    def __init__(self) -> None:
        self.seen = 0
        self.steps: Floats = np.empty(0)
        self.values: Floats = np.empty(0)
        self.places: Ints = np.empty(0, dtype=np.int64)
        self._ordinals: Ints = np.empty(0, dtype=np.int64)
        self._waiting: list[tuple[Floats, Floats, Ints]] = []
        self._width = 1  # points of the file per stretch

    @property
    def size(self) -> int:
        return len(self.values)

    def add(self, steps: Floats, values: Floats, places: Ints) -> None:
        """Add points of the current block, in any order."""
        self._waiting.append((steps, values, places))

    def settle(self, limit: int) -> None:
        """Put the points of a block into order, and thin the track if it is too long."""
        if self._waiting:
            parts = [np.concatenate(p) for p in zip(*self._waiting, strict=True)]
            self._waiting = []
            order = np.argsort(parts[2], kind="stable")
            self.steps = np.concatenate([self.steps, parts[0][order]])
            self.values = np.concatenate([self.values, parts[1][order]])
            self.places = np.concatenate([self.places, parts[2][order]])
            new = np.arange(self.seen, self.seen + len(order), dtype=np.int64)
            self._ordinals = np.concatenate([self._ordinals, new])
            self.seen += len(order)
        if self.size > limit:
            while self.seen > self._width * limit // 8:  # a stretch keeps up to four points
                self._width *= 2
            self.thin()

    def thin(self) -> None:
        """Thin all stretches alike; nothing happens to a track that was never too long."""
        if self._width > 1 and self.size:
            keep = _extremes(self.values, self._ordinals // self._width)
            self.steps, self.values = self.steps[keep], self.values[keep]
            self.places, self._ordinals = self.places[keep], self._ordinals[keep]


def _extremes(values: Floats, stretches: Ints) -> NDArray[np.intp]:
    is_finite = np.isfinite(values)
    finite, other = np.flatnonzero(is_finite), np.flatnonzero(~is_finite)
    ranked = finite[np.lexsort((values[finite], stretches[finite]))]
    ends = [np.array([0, len(values) - 1])]
    for points in (ranked, other):
        if len(points):
            changes = np.flatnonzero(np.diff(stretches[points]))
            ends += [points[np.append(0, changes + 1)], points[np.append(changes, -1)]]
    return np.unique(np.concatenate(ends))


class Tracks:
    """The tracks of a file by tag and kind, in bounded memory."""

    def __init__(self) -> None:
        self.of: dict[tuple[bytes, str], TagTrack] = {}
        self.tags_left_out: set[bytes] = set()
        self._limit = MAX_POINTS
        self._touched: set[tuple[bytes, str]] = set()

    def add(self, tag: bytes, kind: str, steps: Floats, values: Floats, places: Ints) -> None:
        """Add points of a tag; `kind` is ``scalar`` or ``histogram``."""
        track = self.of.get((tag, kind))
        if track is None:
            if len(self.of) >= MAX_TAGS:
                if len(self.tags_left_out) < MAX_TAGS:
                    self.tags_left_out.add(tag)
                return
            track = self.of[tag, kind] = TagTrack()
        track.add(steps, values, places)
        self._touched.add((tag, kind))

    def settle(self) -> None:
        """Finish a block."""
        for key in self._touched:
            self.of[key].settle(self._limit)
        self._touched.clear()
        while sum(t.size for t in self.of.values()) > MAX_TOTAL and self._limit > 16:
            self._limit //= 2
            for track in self.of.values():
                track.settle(self._limit)

    def finish(self) -> list[str]:
        """Thin evenly, and return in words what was left out."""
        for track in self.of.values():
            track.thin()
        said = []
        thinned = [t for t in self.of.values() if t.size < t.seen]
        if thinned:
            most = max(t.seen for t in thinned)
            said.append(
                f"{len(thinned)} tags have up to {most:,} points and were thinned;"
                " extremes and values that are no numbers were kept"
            )
        if self.tags_left_out:
            said.append(f"it has more than {MAX_TAGS:,} tags; the others were left out")
        return said
