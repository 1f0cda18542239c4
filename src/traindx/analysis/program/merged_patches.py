"""One patch out of several of the same files: a fault in two places is mended in both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from traindx.analysis.program.patches import UNENDED

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class _Swap:
    """Old lines, counted from 1, and the lines that stand there afterwards."""

    line: int
    old: int
    new: tuple[str, ...]

    def meets(self, other: _Swap) -> bool:
        if self.line == other.line:
            return True
        first, second = sorted((self, other), key=lambda s: s.line)
        return first.line + first.old > second.line


@dataclass(slots=True)
class _FileChange:
    """What is known of a file before, by line, and what is to change in it."""

    header: tuple[str, str]
    known: dict[int, str] = field(default_factory=dict)
    swaps: list[_Swap] = field(default_factory=list)

    def text(self) -> str:
        made, shift = [*self.header], 0
        for first, last in _stretches(sorted(self.known)):
            swaps = [s for s in self.swaps if first <= s.line <= last + 1]
            body = _body(self.known, first, last, sorted(swaps, key=lambda s: s.line))
            new = sum(not line.startswith("-") for line in body)
            size = last - first + 1
            made.append(f"@@ -{first},{size} +{first + shift},{new} @@")
            made += body
            shift += new - size
        return "\n".join(made) + "\n"


def merged(patches: Sequence[str]) -> str | None:
    """Return one diff that makes all changes; what contradicts an earlier one is left out."""
    once = list(dict.fromkeys(patches))
    if len(once) < 2 or any(UNENDED in p for p in once):
        return once[0] if once else None
    files: dict[str, _FileChange] = {}
    for patch in once:
        parts = list(_parts(patch))
        if any(_is_at_odds(part, files.get(part.header[1])) for part in parts):
            continue
        for part in parts:
            into = files.setdefault(part.header[1], _FileChange(part.header))
            into.known |= part.known
            into.swaps += [s for s in part.swaps if s not in into.swaps]
    return "".join(change.text() for change in files.values())


def _is_at_odds(part: _FileChange, with_: _FileChange | None) -> bool:
    if with_ is None:
        return False
    if any(with_.known.get(line, text) != text for line, text in part.known.items()):
        return True
    return any(a != b and a.meets(b) for a in part.swaps for b in with_.swaps)


def _parts(patch: str) -> Iterator[_FileChange]:
    change: _FileChange | None = None
    line, removed, added, at = 0, 0, list[str](), 0
    lines = patch.split("\n")
    left = 0  # old lines of the hunk
    for number, text in enumerate(lines):
        hunk = _HUNK.match(text)
        is_change = text[:1] in ("+", "-") and not text.startswith(("--- ", "+++ "))
        if change is not None and (removed or added) and not is_change:
            change.swaps.append(_Swap(at, removed, tuple(added)))
            removed, added = 0, []
        if text.startswith("--- ") and lines[number + 1 : number + 2][0].startswith("+++ "):
            if change is not None:
                yield change
            change = _FileChange((text, lines[number + 1]))
        elif hunk is not None:
            left = int(hunk[2] or 1)
            line = int(hunk[1]) + (0 if left else 1)
        elif change is None or text.startswith("+++ "):
            continue
        elif is_change or left > 0:
            if is_change and not removed and not added:
                at = line
            if text.startswith("+"):
                added.append(text[1:])
                continue
            removed += text.startswith("-")
            change.known[line] = text[1:]
            line, left = line + 1, left - 1
    if change is not None:
        yield change


def _stretches(lines: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Return the first and the last of each run of consecutive numbers."""
    start = 0
    for i, line in enumerate(lines):
        if i + 1 == len(lines) or lines[i + 1] != line + 1:
            yield lines[start], line
            start = i + 1


def _body(known: dict[int, str], first: int, last: int, swaps: Sequence[_Swap]) -> list[str]:
    made, line = [], first
    for swap in swaps:
        made += [f" {known[n]}" for n in range(line, swap.line)]
        made += [f"-{known[n]}" for n in range(swap.line, swap.line + swap.old)]
        made += [f"+{text}" for text in swap.new]
        line = swap.line + swap.old
    return made + [f" {known[n]}" for n in range(line, last + 1)]
