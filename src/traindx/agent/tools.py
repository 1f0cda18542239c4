"""What an assistant can ask for: plain functions over the API, confined and bounded.

Each takes the granted folders first and returns JSON values in the shapes of the command line. What
the caller did wrong is a `TraindxError` whose message says what to try.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from traindx import api
from traindx.agent.bounds import (
    FULL_CHARS,
    MAX_TIME_S,
    SUMMARY_CHARS,
    fit,
    summarise_diagnosis,
)
from traindx.agent.roots import Roots, confined
from traindx.artifacts.package import read_package
from traindx.errors import MissingExtra, UnknownName, UsageError
from traindx.evidence import Diagnosis
from traindx.model import Run
from traindx.registry import detectors, readers
from traindx.report.json import strict

Detail = Literal["summary", "full"]

MAX_TEXT = 2 << 20
MAX_QUESTION = 50_000
CHART_WIDTH = 90


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool returns: JSON values, and a picture where one was drawn."""

    data: dict[str, Any]
    png: bytes | None = None


def diagnose(
    roots: Roots,
    paths: Sequence[str] = (),
    symptoms: Sequence[str] = (),
    context: str | None = None,
    detail: Detail = "summary",
    max_time_s: float = MAX_TIME_S,
) -> Answer:
    """Say why a run went wrong, on what evidence, and what to change."""
    started = time.monotonic()
    deadline = started + max_time_s
    run = open_granted(roots, paths, context=context, symptoms=symptoms, deadline=deadline)
    return _told(api.diagnose(run, max_time_s=deadline - time.monotonic()), detail)


def explain_error(
    roots: Roots,
    text: str,
    symptoms: Sequence[str] = (),
    detail: Detail = "summary",
    max_time_s: float = MAX_TIME_S,
) -> Answer:
    """Say what an error text or a piece of a log means; no file is needed."""
    if not text.strip():
        raise UsageError("the text is empty. Try: the whole traceback, from its first line on")
    given = io.BytesIO(text[:MAX_TEXT].encode("utf-8", "replace"))
    with confined(roots):
        run = api.open_run("-", stdin=given, symptoms=symptoms)
    return _told(api.diagnose(run, max_time_s=max_time_s), detail)


def check_source(
    roots: Roots,
    paths: Sequence[str] = (),
    detail: Detail = "summary",
    max_time_s: float = MAX_TIME_S,
) -> Answer:
    """Say which faults training code has, from its source alone."""
    named = _named(roots, paths)
    detectors()
    with confined(roots):
        diagnosis = api.check(*named, max_time_s=max_time_s)
    return _told(diagnosis, detail)


def route(roots: Roots, question: str) -> Answer:
    """Say which specialists a question in words is for, in order, or ask one question back."""
    if not question.strip():
        raise UsageError("the question is empty. Try: what was seen, in a sentence")
    answer = api.route(question[:MAX_QUESTION])
    return Answer(fit(strict(answer.to_dict()), SUMMARY_CHARS))


def inspect_run(
    roots: Roots,
    paths: Sequence[str] = (),
    context: str | None = None,
    detail: Detail = "summary",
    max_time_s: float = MAX_TIME_S,
) -> Answer:
    """Say what the artifacts of a run hold, without judging it."""
    from traindx.readers.recording.incidents import kept_batches
    from traindx.report.inspection import to_dict

    deadline = time.monotonic() + max_time_s
    run = open_granted(roots, paths, context=context, deadline=deadline)
    with confined(roots):
        kept = kept_batches(run.recording) if run.recording is not None else {}
    told = to_dict(run, kept)
    if detail == "full":
        return Answer(fit(told, FULL_CHARS))
    if "recording" in told:  # each process tells of hundreds of parameters
        seen = told["recording"]
        counted = [
            {key: process[key] for key in ("rank", "world_size", "pid", "counts")}
            for process in seen["processes"]
        ]
        told["recording"] = {**seen, "processes": counted, "kept": sorted(seen["kept"])}
    return Answer(fit(told, SUMMARY_CHARS))


def extract_training_metrics(
    roots: Roots,
    paths: Sequence[str] = (),
    names: Sequence[str] = (),
    points: int = 100,
    context: str | None = None,
    max_time_s: float = MAX_TIME_S,
) -> Answer:
    """Return metrics under their canonical names, thinned so that every extreme stays."""
    from traindx.agent.metrics import extract

    deadline = time.monotonic() + max_time_s
    run = open_granted(roots, paths, context=context, deadline=deadline)
    return Answer(strict(extract(run, names, points)))


def visualize_loss_curve(
    roots: Roots,
    paths: Sequence[str] = (),
    metric: str | None = None,
    context: str | None = None,
    max_time_s: float = MAX_TIME_S,
) -> Answer:
    """Draw the losses, or one metric, with the onset of the trouble marked."""
    from traindx.agent.metrics import alone, describe

    deadline = time.monotonic() + max_time_s
    run = open_granted(roots, paths, context=context, deadline=deadline)
    diagnosis = api.diagnose(run, max_time_s=deadline - time.monotonic())
    shown = run if metric is None else alone(run, metric)
    told = describe(shown, diagnosis)
    png = _drawn(shown, diagnosis)
    if png is None:
        told["chart"] = _charted(shown, diagnosis)
    return Answer(strict(told), png)


def analyze_architecture(
    roots: Roots,
    paths: Sequence[str] = (),
    context: str | None = None,
    detail: Detail = "summary",
    max_time_s: float = MAX_TIME_S,
) -> Answer:
    """Return the parameters of a model by block, and what is out of balance among them."""
    from traindx.agent.parameters import analyze

    deadline = time.monotonic() + max_time_s
    run = open_granted(roots, paths, context=context, deadline=deadline)
    diagnosis = api.diagnose(run, max_time_s=deadline - time.monotonic())
    told = strict(analyze(run, diagnosis))
    return Answer(fit(told, SUMMARY_CHARS if detail == "summary" else FULL_CHARS))


TOOLS: Mapping[str, Callable[..., Answer]] = {
    tool.__name__: tool
    for tool in (
        diagnose,
        explain_error,
        check_source,
        route,
        inspect_run,
        extract_training_metrics,
        visualize_loss_curve,
        analyze_architecture,
    )
}


def call(name: str, roots: Roots, arguments: Mapping[str, Any]) -> Answer:
    """Call a tool by its name."""
    if name not in TOOLS:
        raise UnknownName(f"no tool is called {name!r}. Try one of: {', '.join(TOOLS)}")
    return TOOLS[name](roots, **arguments)


def open_granted(
    roots: Roots,
    paths: Sequence[str] = (),
    *,
    context: str | None = None,
    symptoms: Sequence[str] = (),
    deadline: float | None = None,
) -> Run:
    """Read what the paths hold about one run; refuse what lies outside the granted folders."""
    named = _named(roots, paths) if paths or context is None else []
    package = None if context is None else str(roots.locate(context))
    readers()  # a plugin is loaded from wherever it is installed, before the doors are closed
    with confined(roots):
        if package is not None:
            _check_package(roots, package)
        return api.open_run(
            *named,
            context=package,
            symptoms=symptoms,
            stdin=io.BytesIO(),  # the real one belongs to a protocol
            deadline=deadline,
        )


def _named(roots: Roots, paths: Sequence[str]) -> list[str]:
    if paths:
        return [str(roots.locate(path)) for path in paths]
    return [str(roots.locate(str(roots.home)))]


def _check_package(roots: Roots, path: str) -> None:
    """Refuse a package that names files elsewhere, whether they exist or not."""
    package = read_package(Path(path))
    for named in (*map(str, package.files), *(a.path for a in package.missing)):
        if Path(named).is_absolute() or ".." in Path(named).parts:
            roots.place(named)


def _told(diagnosis: Diagnosis, detail: Detail) -> Answer:
    told = strict(diagnosis.to_dict())
    return Answer(summarise_diagnosis(told) if detail == "summary" else fit(told, FULL_CHARS))


def _drawn(run: Run, diagnosis: Diagnosis) -> bytes | None:
    """Return the picture of the losses, or None where nothing can draw one."""
    from traindx.report.figures import draw_loss

    with TemporaryDirectory(prefix="traindx-") as folder:
        path = Path(folder, "loss.png")
        try:
            return path.read_bytes() if draw_loss(run, diagnosis, path) else None
        except MissingExtra:
            return None


def _charted(run: Run, diagnosis: Diagnosis) -> str:
    from traindx.report.chart import UNICODE, draw
    from traindx.report.curves import first_onset, headline_curves

    curves = headline_curves(run)
    rows = draw(curves, CHART_WIDTH, first_onset(run, diagnosis, curves), UNICODE)
    return "\n".join("".join(text for text, _ in row).rstrip() for row in rows)
