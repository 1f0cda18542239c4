"""Console text that stands inside another artifact: read as a log, and located where it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from traindx.errors import UnreadableArtifact
from traindx.model.run import Config, Run, Series
from traindx.readers.formats.console.reader import read as read_console

MAX_BYTES = 256 << 20  # of printed text; a run that prints more says nothing new

Where = Callable[[int], str]  # the place of a line of the text in the artifact, in words
Place = Callable[[int], int]  # the same as a number, for the points of series


class Spool:
    """Printed text, piece by piece, kept in a file until it is read."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="traindx-")
        self._path = Path(self._folder.name, "console.log")
        self._file = self._path.open("w", encoding="utf-8", errors="replace", newline="")
        self.written = 0
        self.lines = 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._folder.cleanup()

    @property
    def is_full(self) -> bool:
        return self.written >= MAX_BYTES

    def write(self, text: str) -> None:
        """Add text; beyond the bound it is dropped."""
        if not self.is_full:
            self._file.write(text)
            self.written += len(text)
            self.lines += text.count("\n")

    def read(self, path: Path, unit: str, where: Where, place: Place = int) -> Run:
        """Read what was written as the console text of an artifact."""
        self._file.close()
        try:
            run = read_console(self._path)
        except UnreadableArtifact:  # empty, or no text
            return Run()
        return _located(run, str(path), unit, where, place)


def _located(run: Run, label: str, unit: str, where: Where, place: Place) -> Run:
    def there(locator: str) -> str:
        line = locator.removeprefix("line ")
        return where(int(line)) if line.isdigit() else locator

    def moved(series: Series) -> Series:
        origin = replace(series.origin, artifact=label, unit=unit)
        places = np.array([place(int(p)) for p in series.places], dtype=np.int64)
        return replace(series, origin=origin, places=places)

    settings = run.config.settings
    return replace(
        run,
        series={name: moved(series) for name, series in run.series.items()},
        events=tuple(replace(e, artifact=label, locator=there(e.locator)) for e in run.events),
        failures=tuple(replace(f, artifact=label, locator=there(f.locator)) for f in run.failures),
        config=Config(
            tuple(replace(s, artifact=label, locator=there(s.locator)) for s in settings)
        ),
        samples=tuple(replace(s, artifact=label, locator=there(s.locator)) for s in run.samples),
        confusions=tuple(
            replace(c, artifact=label, locator=there(c.locator)) for c in run.confusions
        ),
        artifacts=(),
    )
