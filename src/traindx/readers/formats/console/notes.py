"""What single lines say: events, errors with the lines around them, headings, headers, rulers."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from traindx.model.run import Floats
from traindx.readers.formats.console.blocks import LogBlock
from traindx.readers.formats.console.happenings import DEFAULT_LIMIT, LIMITS, recognise
from traindx.readers.formats.console.lines import split_cells, split_words
from traindx.readers.formats.console.plan import LinePlan
from traindx.readers.formats.console.tracks import LineClock, continued

BEFORE, AFTER, LONG_AFTER = 3, 60, 600  # lines around an error and around a traceback
MAX_WINDOW = 3000  # lines
MAX_KEPT = 4 << 20  # characters from the beginning, and as many from the end
MAX_MOMENTS = 100
MAX_MARKS = 200_000
T = TypeVar("T")
_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class Happening:
    """An event with the counters of its line as they were printed."""

    kind: str
    text: str
    place: float
    counters: Floats = field(default_factory=lambda: np.full(4, np.nan))
    count: int = 1


@dataclass(slots=True)
class Window:
    """Lines around an error."""

    first: int
    lines: list[str]
    moments: list[tuple[float, Floats]]  # the lines that speak of errors, and their counters

    @property
    def size(self) -> int:
        return sum(map(len, self.lines))

    def counters(self, line: int) -> Floats | None:
        """Return the counters of the last error at or before a line."""
        before = [counters for place, counters in self.moments if int(place) <= line]
        return before[-1] if before else self.moments[0][1] if self.moments else None


@dataclass(slots=True)
class LogNotes:
    """Everything that was noted while reading a log."""

    happenings: list[Happening] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    headings: list[tuple[float, str]] = field(default_factory=list)
    headers: list[tuple[float, tuple[str, ...]]] = field(default_factory=list)
    rulers: list[float] = field(default_factory=list)
    omitted: int = 0
    _alike: dict[tuple[str, str], list[Happening]] = field(default_factory=dict)
    _last: deque[Window] = field(default_factory=deque)
    _until: int = 0
    _dull: set[LinePlan] = field(
        default_factory=set
    )  # kinds of lines that turned out to say nothing

    def omit(self, count: int) -> None:
        """Count lines that nobody looked at, for there were too many of their kind at once."""
        self.omitted += max(0, count)

    def take(self, marked: list[tuple[int, LinePlan]], lines: LogBlock, clock: LineClock) -> None:
        """Look at the lines of a block that say something."""
        places = lines.places
        marked.sort(key=lambda m: m[0])
        known = len(self.happenings)
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
                # the rows tell which it is: a wide name touches the one before it in "%9s %9s"
                by_gap, by_word = split_cells(text), split_words(text)
                if len(by_gap) >= 3:
                    _append(self.headers, (place, tuple(by_gap)))
                if len(by_word) > len(by_gap):
                    _append(self.headers, (place, tuple(by_word)))
            if plan.is_notable and plan not in self._dull and not self._notice(text, place):
                self._dull.add(plan)
            if plan.is_error:
                errors.append((i, LONG_AFTER if "Traceback" in text else AFTER))
        for noted in self.happenings[known:]:
            noted.counters = clock.at(np.array([noted.place]))[0]
        self._cut(errors, lines, clock)

    def _notice(self, line: str, place: float) -> bool:
        found = recognise(line)
        if found is None:
            return False
        kind, text = found
        alike = self._alike.setdefault((kind, _NUMBER.sub("0", text)), [])
        limit = 1 if kind == "warning" else LIMITS.get(kind, DEFAULT_LIMIT)
        if len(alike) >= limit or len(self.happenings) >= 5000:
            if alike:
                alike[-1].count += 1
            return True
        alike.append(Happening(kind, text, place))
        self.happenings.append(alike[-1])
        return True

    def _cut(self, errors: list[tuple[int, int]], lines: LogBlock, clock: LineClock) -> None:
        """Keep the lines around errors; a window that began in the last block goes on in this."""
        spans: list[tuple[int, int]] = [(0, self._until)] if self._until else []
        for i, after in errors:
            start, end = max(0, i - BEFORE), i + after
            if spans and start <= spans[-1][1]:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((start, end))
        goes_on, self._until = bool(self._until), 0
        for start, end in spans:
            stop = min(end, len(lines), start + MAX_WINDOW)
            first, kept = _window(lines, start, stop)
            at = np.array([lines.places[i] for i, _ in errors if start <= i < stop][:MAX_MOMENTS])
            moments = list(zip(at.tolist(), clock.at(at), strict=True))
            self._keep(Window(first, kept, moments), goes_on)
            self._until, goes_on = max(0, end - len(lines)), False

    def _keep(self, window: Window, is_continued: bool) -> None:
        """Keep the first windows of a log and the last ones, for that is where it failed."""
        last = (self._last or self.windows)[-1] if self._last or self.windows else None
        if is_continued and last is not None and len(last.lines) < MAX_WINDOW:
            last.lines += window.lines
            last.moments += window.moments
        elif sum(w.size for w in self.windows) < MAX_KEPT:
            self.windows.append(window)
        else:
            self._last.append(window)
            while len(self._last) > 1 and sum(w.size for w in self._last) > MAX_KEPT:
                self._last.popleft()

    def append(self, later: LogNotes, lines: int, now: Floats) -> None:
        """Add what was noted in the part of the log that follows, so many lines after its start."""
        self.headings += [(place + lines, heading) for place, heading in later.headings]
        self.headers += [(place + lines, cells) for place, cells in later.headers]
        self.rulers += [place + lines for place in later.rulers]
        self.omitted += later.omitted
        for noted in later.happenings:
            alike = self._alike.setdefault((noted.kind, _NUMBER.sub("0", noted.text)), [])
            if noted.kind == "warning" and alike:
                alike[-1].count += noted.count
                continue
            noted.place += lines
            noted.counters = continued(noted.counters, now)
            alike.append(noted)
            self.happenings.append(noted)
        for window in later.windows:
            window.first += lines
            window.moments = [(p + lines, continued(c, now)) for p, c in window.moments]
            self.windows.append(window)

    def close(self) -> None:
        """Put the last windows after the first ones."""
        self.windows += self._last
        self._last.clear()


def _append(items: list[T], item: T) -> None:
    if len(items) < MAX_MARKS:
        items.append(item)


def _window(lines: LogBlock, start: int, end: int) -> tuple[int, list[str]]:
    """Return text lines; of the pieces of a bar, the last one is what a reader would see."""
    kept: dict[int, str] = {}
    for i in range(start, end):
        text = lines[i].decode("utf-8", errors="replace")
        place = int(lines.places[i])
        if text.strip() or place not in kept:
            kept[place] = text
    first = min(kept, default=1)
    return first, [kept.get(i, "") for i in range(first, max(kept, default=0) + 1)]
