"""What single lines say: events, errors with the lines around them, headings, headers, rulers."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from traindx.model import Floats
from traindx.readers.console.happenings import DEFAULT_LIMIT, LIMITS, recognise
from traindx.readers.console.lines import split_cells
from traindx.readers.console.plan import Plan
from traindx.readers.console.tracks import Clock

BEFORE, AFTER, LONG_AFTER = 3, 60, 600  # lines around an error and around a traceback
MAX_WINDOWS = 400  # from the beginning; of the rest the last ones are kept
MAX_MARKS = 200_000
T = TypeVar("T")
_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class Happening:
    """An event with the counters of its line as they were printed."""

    kind: str
    text: str
    place: int
    counters: Floats
    count: int = 1


@dataclass(slots=True)
class Window:
    """Lines around an error."""

    first: int
    lines: list[str]
    counters: Floats


@dataclass(slots=True)
class Notes:
    """Everything that was noted while reading a log."""

    happenings: list[Happening] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    headings: list[tuple[float, str]] = field(default_factory=list)
    headers: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)
    rulers: list[float] = field(default_factory=list)
    omitted: int = 0
    _alike: dict[tuple[str, str], list[Happening]] = field(default_factory=dict)
    _last: deque[Window] = field(default_factory=lambda: deque(maxlen=MAX_WINDOWS))
    _until: int = 0

    def omit(self, count: int) -> None:
        """Count lines that nobody looked at, for there were too many of their kind at once."""
        self.omitted += max(0, count)

    def take(
        self, marked: list[tuple[int, Plan]], lines: Sequence[bytes], places: Floats, clock: Clock
    ) -> None:
        """Look at the lines of a block that say something."""
        marked.sort(key=lambda m: m[0])
        errors: list[tuple[int, int]] = []
        for i, plan in marked:
            place = float(places[i])
            if plan.is_ruler:
                _append(self.rulers, place)
            if plan.heading is not None:
                _append(self.headings, (place, plan.heading))
            if not (plan.is_header or plan.is_notable or plan.is_error):
                continue
            text = lines[i].decode("utf-8", errors="replace")
            if plan.is_header:
                cells = split_cells(text)
                cells = cells if len(cells) >= 3 else text.split()
                _append(self.headers, (place, tuple(cells)))
            if plan.is_notable:
                self._notice(text, int(place), clock.at(places[i : i + 1])[0])
            if plan.is_error:
                errors.append((i, LONG_AFTER if "Traceback" in text else AFTER))
        self._cut(errors, lines, places, clock)

    def _notice(self, line: str, place: int, counters: Floats) -> None:
        found = recognise(line)
        if found is None:
            return
        kind, text = found
        alike = self._alike.setdefault((kind, _NUMBER.sub("0", text)), [])
        limit = 1 if kind == "warning" else LIMITS.get(kind, DEFAULT_LIMIT)
        if len(alike) >= limit or len(self.happenings) >= 5000:
            if alike:
                alike[-1].count += 1
            return
        alike.append(Happening(kind, text, place, counters))
        self.happenings.append(alike[-1])

    def _cut(
        self,
        errors: list[tuple[int, int]],
        lines: Sequence[bytes],
        places: Floats,
        clock: Clock,
    ) -> None:
        """Keep the lines around errors; a window that began in the last block goes on in this."""
        spans: list[tuple[int, int]] = []
        if self._until:
            spans.append((0, self._until))
        for i, after in errors:
            start, end = max(0, i - BEFORE), i + after
            if spans and start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((start, end))
        goes_on = bool(self._until)
        count = len(lines) - (not lines[-1])
        for k, (start, end) in enumerate(spans):
            first, kept = _window(lines[start : min(end, count)], places[start:])
            self._keep(
                Window(first, kept, clock.at(places[start : start + 1])[0]), goes_on and not k
            )
        self._until = max(0, spans[-1][1] - count) if spans else 0

    def _keep(self, window: Window, is_continued: bool) -> None:
        kept = self._last or self.windows
        if is_continued and kept:
            kept[-1].lines += window.lines
        elif len(self.windows) < MAX_WINDOWS:
            self.windows.append(window)
        else:
            self._last.append(window)

    def close(self) -> None:
        """Put the last windows after the first ones."""
        self.windows += self._last
        self._last.clear()


def _append(items: list[T], item: T) -> None:
    if len(items) < MAX_MARKS:
        items.append(item)


def _window(lines: Sequence[bytes], places: Floats) -> tuple[int, list[str]]:
    """Return text lines; of the pieces of a bar, the last one is what a reader would see."""
    kept: dict[int, str] = {}
    for line, place in zip(lines, np.floor(places[: len(lines)]).astype(int).tolist(), strict=True):
        text = line.decode("utf-8", errors="replace")
        if text.strip() or place not in kept:
            kept[place] = text
    first = min(kept, default=1)
    return first, [kept.get(i, "") for i in range(first, max(kept, default=0) + 1)]
