"""The lines of a text without what launchers, loggers and people put before them.

Lines of several ranks may be mixed. A line's prefix says whose it is, so the lines are sorted into
one stream per writer before anything is parsed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_LINE_CHARS = 20_000  # as long as a whole message may get: nothing past it is kept anyway
MAX_PREFIXES = 6  # pod, worker, rank, time, level, quote: more is not seen in one line

LEVELS = "DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|EXCEPTION"

# colour codes; some pastes lose the escape character and keep the rest
ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*\x07?|\[\d{1,3}(?:;\d{1,3}){0,5}m")

PREFIX = re.compile(
    rf"""
    (?P<quote>>{{1,2}}(?=\s|$)\ ?)
    |(?P<keyed>(?:
        \[(?:[Rr]ank|RANK|default|trainer|worker)[ :]{{0,2}}(?P<rank>\d{{1,6}})\]:?
        |\[\d{{1,9}},(?P<mpi>\d{{1,6}})\]<std(?:err|out)>:
        |\ {{0,3}}(?P<label>\d{{1,5}}):(?=\s|$)
        |\([^\s()]{{0,80}}(?:\([^\s()]{{0,80}}\))?\ ?pid=\d{{1,9}}(?:,\ ip=[\w.:]{{1,60}})?\)
        |\[pod/[^\]\s]{{1,200}}\]
        |[A-Za-z][A-Za-z.]{{0,60}}[-_][\w.-]{{0,60}}\d\ {{1,20}}\|(?=\s|$)
        |std(?:err|out):(?=\s|$)
        |(?:worker-?\d{{1,6}}|(?:\d{{1,3}}\.){{3}}\d{{1,3}}):(?=\s)
      )\ ?)
    |(?P<time>
        \[?\d{{4}}[-/.]\d\d[-/.]\d\d[T _]\d\d:\d\d(?::\d\d(?:[.,]\d{{1,9}})?)?
            (?:Z:?|[+-]\d\d:?\d\d)?\]?
        |\[?\d\d/\d\d/\d{{2,4}},?\ \d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?\]?
        |\d\d-[A-Z][a-z]{{2}}-\d{{2,4}}\ \d\d:\d\d:\d\d
        |\[?\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?\]?(?=\s)
        |[A-Z][a-z]{{2}}\ [ \d]\d\ \d\d:\d\d:\d\d\ [\w.-]{{1,80}}\ [\w./-]{{1,80}}\[\d{{1,9}}\]:
      )
    |(?P<glog>\[?(?P<letter>[EWIF])\d{{3,4}}\ \d\d:\d\d:\d\d\.\d{{1,9}}\ [^\]]{{0,160}}\]\ ?
        (?:\[\d{{1,6}}/\d{{1,6}}(?:_\d{{1,6}})?\]\ ?)?)
    |(?P<level>(?:wandb:\ )?\[?(?P<word>{LEVELS})\b(?:\|[^\]\s]{{1,100}})?(?:\s{{0,4}}\])?
        (?::(?![\w.]{{0,80}}(?:Error|Exception):)[\w.]{{1,80}}:|\ ?[-:|](?=\s|$)\ ?|\ ?))
    """,
    re.VERBOSE,
)
LEVEL = re.compile(rf"\b({LEVELS})\b|\[({LEVELS.lower()})\s{{0,8}}\]")
AFTER_LEVEL = re.compile(
    r"(?:\s{0,4}[\])])?"
    r"(?:\s{0,4}\|\s?(?:[\w.<>]{1,80}:[\w.<>]{1,80}:\d{1,6} [-|] )?| ?[-:](?=\s|$))? ?"
    r"(?:[\w.]{1,80} - |[\w./]{1,80}:\d{1,6} -- )?(?:\[[^\]\s]{1,80}\]:? ?){0,3}"
)
GLOG_LEVELS = {"E": "ERROR", "W": "WARNING", "I": "INFO", "F": "FATAL"}
WORD = re.compile(r"[\w./]+")

ESCAPED = "call last):\\n"
QUOTED = 'File \\"'
BAR = re.compile(r"( {2,200})\|(?: |$)")
GROUP_HEADING = re.compile(r"( {0,200})\+ (?=Exception Group Traceback)")


class Line(NamedTuple):
    """One line of a stream: its text without prefixes, and what the prefixes said."""

    number: int
    text: str
    rank: int | None = None
    level: str | None = None  # None: no log prefix; "": a time without a level
    depth: int = 0  # how deep in an exception group

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())


def split_streams(text: str, first_line: int) -> list[list[Line]]:
    """Return the lines of each writer, without prefixes, colours and carriage returns."""
    streams: dict[str, list[Line]] = {}
    for number, whole in enumerate(ANSI.sub("", text).split("\n"), first_line):
        for part in _parts(whole):
            key, line = _strip(part[:MAX_LINE_CHARS], number)
            streams.setdefault(key, []).append(line)
    return list(streams.values())


def _parts(whole: str) -> list[str]:
    """Return what a terminal showed one after the other in a line: progress bars use returns.

    A traceback that was printed as a value, or kept as JSON, has its line ends and quotes escaped.
    """
    if ESCAPED in whole:
        told = whole.rstrip("'\"").removesuffix("\\n")
        return told.replace("\\n", "\n").replace("\\'", "'").split("\n")
    if QUOTED in whole:
        whole = whole.replace('\\"', '"')
    if "\r" not in whole:
        return [whole]
    return [part for part in whole.split("\r") if part.strip()] or [""]


def _strip(text: str, number: int) -> tuple[str, Line]:
    key, rank, level, at = "", None, None, 0
    for _ in range(MAX_PREFIXES):
        found = PREFIX.match(text, at)
        if found is None or found.end() == at:
            break
        kind, at = found.lastgroup, found.end()
        if kind == "keyed":
            given = found["rank"] or found["mpi"] or found["label"]
            rank = int(given) if given else rank
            part = f"rank{rank};" if found["rank"] else f"{found['keyed'].strip()};"
            key += "" if part in key else part
        elif kind == "time":
            named, at = _after_time(text, at)
            level = named or level or ""
        elif kind == "glog":
            level = GLOG_LEVELS[found["letter"]]
        elif kind == "level":
            level = found["word"]
    text, depth = _strip_bar(text[at:])
    return key, Line(number, text.rstrip(), rank, level, depth)


def _after_time(text: str, at: int) -> tuple[str, int]:
    """Return the level that follows a time, and where the message starts."""
    window = text[at : at + 100]
    found = LEVEL.search(window)
    if found is not None:
        before = window[: found.start()]
        is_name = len(WORD.findall(before)) <= 3 and "Error" not in before
        if is_name and "Exception" not in before:
            tail = AFTER_LEVEL.match(text, at + found.end())
            return found[0].strip("[] ").upper(), tail.end() if tail else at + found.end()
    return "", at + (3 if window.startswith(" - ") else 1 if window.startswith(" ") else 0)


def _strip_bar(text: str) -> tuple[str, int]:
    if text.startswith("  ") or text.startswith("+"):
        found = BAR.match(text) or GROUP_HEADING.match(text)
        if found is not None:
            return text[found.end() :], max(1, len(found[1]) // 2)
    return text, 0
