"""The composition root: what the command line, notebooks and assistants call."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import IO

from traindx import catalogue, notebook, patience, routing
from traindx import diagnosis as engine
from traindx.artifacts import open_paths
from traindx.artifacts.sources import open_sources
from traindx.errors import TraindxError, UnknownName
from traindx.evidence import Diagnosis, Skipped
from traindx.failures import parse_failures
from traindx.model import Run
from traindx.source import project_of

Path = str | os.PathLike[str]
FEWEST_PASTED_LINES = 3  # of a log or of code, before its curves and calls mean anything
PASTED_MAX_TIME_S = 10.0  # a question is answered while someone waits

notebook.enable()


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
    return notebook.remember(engine.diagnose(run, deadline=deadline), run)


def check(*paths: Path, max_time_s: float = 300.0) -> Diagnosis:
    """Say which faults the training code below the paths has, from its source alone."""
    return check_run(*paths, max_time_s=max_time_s)[1]


def check_run(*paths: Path, max_time_s: float = 300.0) -> tuple[Run, Diagnosis]:
    """Check training code as `check` does, and return it as a run together with the diagnosis."""
    deadline = time.monotonic() + max_time_s
    started = time.monotonic()
    run = open_sources([os.fspath(p) for p in paths])
    diagnosis = engine.diagnose(run, deadline=deadline)
    missed = tuple(s for s in diagnosis.skipped if not s.detector or not s.needs)
    parsed = {m.path for m in project_of(run).modules}
    broken = [s.path for s in run.sources if s.path not in parsed]
    unparsed = tuple(Skipped("", (p,), f"{p}: not Python that can be parsed") for p in broken)
    summary = diagnosis.summary
    if not diagnosis.root_causes:
        count = f"{len(run.sources)} {'file' if len(run.sources) == 1 else 'files'}"
        summary = f"No fault shown in {count}." if run.sources else "No file here uses torch."
    diagnosis = replace(
        diagnosis,
        summary=summary,
        skipped=(*missed, *unparsed),
        duration_s=time.monotonic() - started,
    )
    return run, diagnosis


def explain(what: str) -> str:
    """Say in Markdown what a cause or a detector is, or what an error text means."""
    try:
        return notebook.MarkdownText(catalogue.explain_name(what))
    except UnknownName as error:
        if catalogue.is_like_a_name(what):
            near = catalogue.suggest_names(what)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise UnknownName(f"{error}{hint}") from None
    from traindx import report

    run = open_run("-", stdin=io.BytesIO(what.encode("utf-8", "replace")))
    return notebook.MarkdownText(report.render("markdown", run, diagnose(run)))


def route(question: str) -> routing.Route:
    """Say which specialists a question in words needs, in which order; or ask; or decline.

    An error, a log or a traceback pasted with the question is read as `diagnose` reads it.
    """
    return routing.route(question, _causes_told(question))


def _causes_told(question: str) -> dict[str, float]:
    """The causes that the detectors see in what was pasted, by confidence."""
    pasted = routing.split_sections(question).pasted
    if not parse_failures(question, "") and pasted.count("\n") < FEWEST_PASTED_LINES:
        return {}
    try:
        run = open_run("-", stdin=io.BytesIO(question.encode()))
        found = engine.diagnose(run, deadline=time.monotonic() + PASTED_MAX_TIME_S)
    except TraindxError:
        return {}
    return {h.cause: h.confidence for h in found.root_causes}
