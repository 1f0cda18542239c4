"""Tells lines that show what a run did from lines that may say anything."""

from __future__ import annotations

import io
import re
import tokenize
from functools import cached_property

from traindx.model.run import Run, Setting

PLAIN_VALUE = 40  # characters; a setting or a literal that is longer is prose

_LINE = re.compile(r"lines?\s+(\d+)(?:\s+to\s+(\d+))?", re.IGNORECASE)
_PROSE = frozenset({"warning", "note", "message"})  # kinds of event whose text is free


class LineKinds:
    """Knows which lines of a run's artifacts a reader took for data, failures, settings or code."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._code: dict[str, dict[int, str]] = {}

    def is_observed(self, artifact: str, line: int, quote: str) -> bool:
        """Tell whether a quoted line is an observation and not mere text."""
        if any(source.path == artifact for source in self.run.sources):
            return self._is_code(artifact, line, quote)
        return (artifact, line) in self._observed

    def is_plain(self, setting: Setting) -> bool:
        """Tell whether a setting's value is a value and no prose."""
        return len(str(setting.value)) <= PLAIN_VALUE

    @cached_property
    def _observed(self) -> set[tuple[str, int]]:
        places: set[tuple[str, int]] = set()
        for series in self.run.series.values():
            if series.origin.unit == "line":
                places.update((series.origin.artifact, int(p)) for p in series.places)
        for failure in self.run.failures:
            above = 2 * len(failure.frames) + 1  # each frame has a place and its code
            for last in _lines_of(failure.locator):
                places.update((failure.artifact, n) for n in range(last - above, last + 1))
        for event in self.run.events:
            if event.kind not in _PROSE:
                places.update((event.artifact, n) for n in _lines_of(event.locator))
        for setting in self.run.config.settings:
            if self.is_plain(setting):
                places.update((setting.artifact, n) for n in _lines_of(setting.locator))
        return places

    def _is_code(self, artifact: str, line: int, quote: str) -> bool:
        if artifact not in self._code:
            source = next(s for s in self.run.sources if s.path == artifact)
            self._code[artifact] = code_lines(source.text)
        code = "".join(self._code[artifact].get(line, "").split())
        quoted = "".join(quote.split())
        return bool(code) and (quoted in code or code in quoted)


def _lines_of(locator: str) -> range:
    found = _LINE.search(locator)
    if found is None:
        return range(0)
    first = int(found[1])
    return range(first, min(int(found[2] or first), first + 1000) + 1)


def code_lines(text: str) -> dict[int, str]:
    """Return the code of each line, without comments and without long strings."""
    lines: dict[int, str] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_prose = token.type == tokenize.COMMENT or (
                token.type == tokenize.STRING and len(token.string) > PLAIN_VALUE
            )
            if not is_prose and "\n" not in token.string.strip() and token.string.strip():
                number = token.start[0]
                lines[number] = lines.get(number, "") + token.string
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass  # what was read until there is code
    return lines
