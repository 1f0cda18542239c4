"""What the specialist may look at: the artifacts of one run, by name, in bounded pieces.

Each function returns text for a language model; what comes from an artifact is in a data block.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx import api
from traindx.agent import tools
from traindx.agent.bounds import SUMMARY_CHARS, fit
from traindx.agent.granted_folders import Roots
from traindx.agent.lookup import Lookup
from traindx.agent.quotes import Quoter
from traindx.errors import TraindxError, UsageError
from traindx.report import inspection
from traindx.report.words import clean, clean_piece, number, step

MOST_LINES = 200
MOST_CHARACTERS = 12_000
LONGEST_LINE = 500
MOST_HITS = 40
MOST_POINTS = 120
ALL = 10**9
EXPLAINING_S = 20.0

_TEXT, _WHOLE, _REAL = {"type": "string"}, {"type": "integer"}, {"type": "number"}
_READ_LINES = "Lines of a text artifact with their numbers, to quote them as evidence."
_FIND_TEXT = "Lines that contain a text (no pattern), in one artifact or in all of them."
_READ_METRIC = "Values of a metric with their steps and lines; long stretches are thinned out."
_EXPLAIN = "What a cause or a detector of the catalogue is, and what would confirm it."
_EXPLAIN_ERROR = "What an error text or a traceback means, by the engine's rules."
_INSPECT = "What the artifacts hold: settings, parameters by block, memory, checkpoints."
_SEE_INDEX = "Try: a name of the index"  # names are data too, and errors stand outside of blocks


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the specialist may call, and what it is told about it."""

    name: str
    description: str
    properties: Mapping[str, Mapping[str, str]]
    required: tuple[str, ...]
    call: Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True, slots=True)
class ArtifactAccess:
    """The specialist's view of a run."""

    lookup: Lookup
    quoter: Quoter

    def tools(self) -> tuple[Tool, ...]:
        """Return everything the specialist may do; nothing here writes, runs or names a path."""
        lines = {"artifact": _TEXT, "first": _WHOLE, "last": _WHOLE}
        stretch = {"metric": _TEXT, "first_step": _REAL, "last_step": _REAL}
        found = {"text": _TEXT, "artifact": _TEXT}
        return (
            Tool("read_lines", _READ_LINES, lines, ("artifact", "first"), self.read_lines),
            Tool("find_text", _FIND_TEXT, found, ("text",), self.find_text),
            Tool("read_metric", _READ_METRIC, stretch, ("metric",), self.read_metric),
            Tool("explain", _EXPLAIN, {"name": _TEXT}, ("name",), self.explain),
            Tool("explain_error", _EXPLAIN_ERROR, {"text": _TEXT}, ("text",), self.explain_error),
            Tool("inspect", _INSPECT, {}, (), self.inspect),
        )

    def read_lines(self, given: Mapping[str, Any]) -> str:
        """Return lines of one artifact."""
        artifact = self._artifact(given["artifact"])
        first = max(int(given["first"]), 1)
        last = min(int(given.get("last", first + MOST_LINES - 1)), first + MOST_LINES - 1)
        lines = [_numbered(n, line) for n, line in self.lookup.lines(artifact, first, last)]
        if not lines:
            raise UsageError(f"there are no lines {first} to {last} of text in it")
        return self._block(f"{artifact}, lines {first} to {last}", lines)

    def find_text(self, given: Mapping[str, Any]) -> str:
        """Return the lines that contain a text."""
        wanted = str(given["text"]).lower()
        if not wanted.strip():
            raise UsageError("an empty text is in every line")
        only = given.get("artifact")
        names = [self._artifact(only)] if only else self.lookup.artifacts()
        hits: list[str] = []
        for name in names:
            for n, line in self.lookup.lines(name, 1, ALL):
                if len(hits) < MOST_HITS and wanted in line.lower():
                    hits.append(f"{clean(name, 120)}: {_numbered(n, line)}")
        return self._block(f"lines with {given['text']}", hits) if hits else "No line has it."

    def read_metric(self, given: Mapping[str, Any]) -> str:
        """Return points of a metric."""
        found = self.lookup.series(str(given["metric"]))
        if not found:
            raise UsageError(f"no metric is called {clean(given['metric'], 80)!r}. {_SEE_INDEX}")
        low = float(given.get("first_step", -np.inf))
        high = float(given.get("last_step", np.inf))
        lines = []
        for series in found[:4]:
            chosen = np.flatnonzero((series.steps >= low) & (series.steps <= high))
            if len(chosen) > MOST_POINTS:
                picked = np.linspace(0, len(chosen) - 1, MOST_POINTS).round().astype(int)
                lines.append(f"{len(chosen)} points, of which {MOST_POINTS} are shown")
                chosen = chosen[np.unique(picked)]
            lines.append(f"{clean(series.name, 80)} by {series.axis}:")
            for i in chosen:
                value = number(float(series.values[i]))
                lines.append(f"{step(float(series.steps[i]))}: {value} ({series.where(int(i))})")
        return self._block(f"metric {given['metric']}", lines)

    def explain(self, given: Mapping[str, Any]) -> str:
        """Return a page of the catalogue, which is traindx's own text."""
        return api.explain_name(str(given["name"])[:120])

    def explain_error(self, given: Mapping[str, Any]) -> str:
        """Return what the engine makes of an error text; no file is opened for it."""
        found = tools.explain_error(Roots(()), str(given["text"]), max_time_s=EXPLAINING_S)
        return self.quoter.block("explanation of an error", json.dumps(found.data, indent=1))

    def inspect(self, given: Mapping[str, Any]) -> str:
        """Return what the run holds, without judging it."""
        told = fit(inspection.to_dict(self.lookup.run, {}), SUMMARY_CHARS)
        return self.quoter.block("what the artifacts hold", json.dumps(told, indent=1))

    def index(self) -> str:
        """Return what there is to look at: artifacts with their lengths, and metrics."""
        lines = ["artifacts:"]
        readers = {a.path: a.reader for a in self.lookup.run.artifacts}
        for name in self.lookup.artifacts()[:200]:
            kind = "text" if self.lookup.has_text(name) else "no text"
            lines.append(f"- {clean(name, 200)} ({readers.get(name, 'source')}, {kind})")
        lines.append("metrics (name: points, first to last step, last value):")
        for series in list(self.lookup.run.series.values())[:150]:
            if len(series):
                span = f"{step(float(series.steps[0]))} to {step(float(series.steps[-1]))}"
                name = clean(series.name, 80)
                lines.append(f"- {name}: {len(series)}, {span}, {number(series.last)}")
        return self._block("index of the artifacts", lines)

    def _artifact(self, name: Any) -> str:
        found = self.lookup.artifact(str(name))
        if found is None:
            raise UsageError(f"{clean(name, 120)!r} is not among the artifacts. {_SEE_INDEX}")
        return found

    def _block(self, title: str, lines: list[str]) -> str:
        kept: list[str] = []
        size = 0
        for line in lines:
            size += len(line) + 1
            if size > MOST_CHARACTERS:
                kept.append(f"({len(lines) - len(kept)} more lines; ask for a smaller stretch)")
                break
            kept.append(line)
        return self.quoter.block(title, "\n".join(kept))


def _numbered(line: int, text: str) -> str:
    return f"{line}: {clean_piece(text)[:LONGEST_LINE].rstrip()}"


def answered(tool: Tool, given: Mapping[str, Any]) -> tuple[str, bool]:
    """Call a tool and return what it says, and whether that is an error."""
    try:
        return tool.call(given), False
    except TraindxError as error:
        return str(error), True
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        return f"that call makes no sense: {type(error).__name__}: {clean(error, 200)}", True
