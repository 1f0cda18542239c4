"""The composition root: what the command line, notebooks and assistants call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import IO

from traindx import diagnosis as engine
from traindx import patience
from traindx.artifacts import open_paths
from traindx.evidence import Diagnosis
from traindx.model import Run

Path = str | os.PathLike[str]


def open_run(
    *paths: Path,
    context: Path | None = None,
    symptoms: Sequence[str] = (),
    stdin: IO[bytes] | None = None,
    tell: Callable[[str], None] = lambda label: None,
    deadline: float | None = None,
) -> Run:
    """Read everything that the paths hold about one training run.

    A path is a file or a folder, `-` is standard input, and no path means the current folder.
    `tell` hears of each file before it is read; at the deadline reading ends with what it has.
    """
    with patience.until(deadline):
        return open_paths(
            [os.fspath(p) for p in paths],
            stdin=stdin,
            context=None if context is None else os.fspath(context),
            symptoms=symptoms,
            tell=tell,
        )


def diagnose(
    run: Run | Path,
    *more: Path,
    context: Path | None = None,
    symptoms: Sequence[str] = (),
    max_time_s: float = 300.0,
) -> Diagnosis:
    """Say what went wrong in a run, on what evidence, and what to change.

    Give a `Run`, or the paths of its artifacts.
    """
    deadline = time.monotonic() + max_time_s
    if not isinstance(run, Run):
        run = open_run(run, *more, context=context, symptoms=symptoms, deadline=deadline)
    return engine.diagnose(run, deadline=deadline)
