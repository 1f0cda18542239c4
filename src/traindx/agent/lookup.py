"""Where cited evidence is looked up: the artifacts of one run, by their names and by no path.

Nothing outside of what the run was read from can be named here, so nothing outside can be read.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from traindx.model.run import Run, Series
from traindx.readers.text import LineBlocks, is_text

LARGEST_BYTES = 32 << 20  # of a log, half of it from its beginning and half from its end
_HEAD = 8192

Blocks = list[tuple[int, list[str]]]


@dataclass(slots=True)
class Lookup:
    """The text and the series of a run's artifacts; `texts` holds those that are no files."""

    run: Run
    texts: Mapping[str, str] = field(default_factory=dict)
    _read: dict[str, Blocks | None] = field(default_factory=dict)

    def artifacts(self) -> list[str]:
        """Return the names of everything that was read, each once."""
        read = [a.path for a in self.run.artifacts if a.reader]
        return list(dict.fromkeys([*read, *(s.path for s in self.run.sources)]))

    def artifact(self, name: str) -> str | None:
        """Return the artifact that a name means: its whole path, or an end that only one has."""
        names = self.artifacts()
        if name in names:
            return name
        wanted = "/" + name.strip().removeprefix("./").lstrip("/")
        ends = [n for n in names if n.endswith(wanted)]
        return ends[0] if len(ends) == 1 else None

    def line(self, artifact: str, number: int) -> str | None:
        """Return one line of a text artifact, or None where there is no such line."""
        return next((text for _, text in self.lines(artifact, number, number)), None)

    def lines(self, artifact: str, first: int, last: int) -> Iterator[tuple[int, str]]:
        """Yield the lines of a text artifact from one to another, with their numbers."""
        for start, lines in self._blocks(artifact) or ():
            low, high = max(first - start, 0), min(last - start + 1, len(lines))
            for offset in range(low, high):
                yield start + offset, lines[offset]

    def has_text(self, artifact: str) -> bool:
        return self._blocks(artifact) is not None

    def series(self, name: str) -> list[Series]:
        """Return the series of a name, by the name used here or the one in the artifact."""
        every = self.run.series
        exact = [s for n, s in every.items() if n == name or n.startswith(f"{name}@")]
        return exact or [s for s in every.values() if s.origin.name == name]

    def values_at(self, name: str, step: float) -> list[tuple[float, Series, int]]:
        """Return every value that a metric has at a step: a resumed run may have several."""
        found = []
        for series in self.series(name):
            for index in np.flatnonzero(np.isclose(series.steps, step, rtol=0, atol=1e-6)):
                found.append((float(series.values[index]), series, int(index)))
        return found

    def _blocks(self, artifact: str) -> Blocks | None:
        if artifact not in self._read:
            self._read[artifact] = self._load(artifact)
        return self._read[artifact]

    def _load(self, artifact: str) -> Blocks | None:
        held = {s.path: s.text for s in self.run.sources} | dict(self.texts)
        if artifact in held:
            return [(1, held[artifact].replace("\r\n", "\n").split("\n"))]
        if artifact not in self.artifacts():
            return None
        path = Path(artifact)
        try:
            if not _is_plain(path):
                return None
            return list(LineBlocks(path, LARGEST_BYTES))
        except OSError:
            return None


def _is_plain(path: Path) -> bool:
    """Tell whether it is a text file, and no link that leads out of its own folder."""
    target = path.resolve(strict=True)
    if path.is_symlink() and not target.is_relative_to(path.parent.resolve()):
        return False
    if not stat.S_ISREG(target.stat().st_mode):
        return False
    with target.open("rb") as file:
        return is_text(file.read(_HEAD))
