"""What an assistant can ask for: plain functions over the API, confined and bounded.

Each takes the granted folders first and returns JSON values in the shapes of the command line. What
the caller did wrong is a `TraindxError` whose message says what to try.
"""

from __future__ import annotations

import io
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
from traindx.agent.granted_folders import Roots, confined
from traindx.errors import MissingExtra, UnknownName, UsageError
from traindx.model.findings import Diagnosis
from traindx.model.run import Run
from traindx.readers.deadline import Deadline
from traindx.readers.package import read_package
from traindx.registry import detectors, readers
from traindx.report.json import strict

Detail = Literal["summary", "full"]

MAX_TEXT = 2 << 20
MAX_QUESTION = 50_000
CHART_WIDTH = 90


@dataclass(frozen=True, slots=True)
class ToolAnswer:
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
) -> ToolAnswer:
    """Say why a run went wrong, on what evidence, and what to change."""
    limit = Deadline.after(max_time_s)
    run = open_granted(roots, paths, context=context, symptoms=symptoms, max_time_s=max_time_s)
    return _told(api.diagnose(run, max_time_s=limit.left_s), detail)


def explain_error(
    roots: Roots,
    text: str,
    symptoms: Sequence[str] = (),
    detail: Detail = "summary",
    max_time_s: float = MAX_TIME_S,
) -> ToolAnswer:
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
) -> ToolAnswer:
    """Say which faults training code has, from its source alone."""
    named = _named(roots, paths)
    detectors()
    with confined(roots):
        diagnosis = api.check(*named, max_time_s=max_time_s)
    return _told(diagnosis, detail)


def route(roots: Roots, question: str) -> ToolAnswer:
    """Say which specialists a question in words is for, in order, or ask one question back."""
    if not question.strip():
        raise UsageError("the question is empty. Try: what was seen, in a sentence")
    answer = api.route(question[:MAX_QUESTION])
    return ToolAnswer(fit(strict(answer.to_dict()), SUMMARY_CHARS))


def inspect_run(
    roots: Roots,
    paths: Sequence[str] = (),
    context: str | None = None,
    detail: Detail = "summary",
    max_time_s: float = MAX_TIME_S,
) -> ToolAnswer:
    """Say what the artifacts of a run hold, without judging it."""
    from traindx.readers.formats.recording.kept_step import kept_batches
    from traindx.report.inspection import to_dict

    run = open_granted(roots, paths, context=context, max_time_s=max_time_s)
    with confined(roots):
        kept = kept_batches(run.recording) if run.recording is not None else {}
    told = to_dict(run, kept)
    if detail == "full":
        return ToolAnswer(fit(told, FULL_CHARS))
    if "recording" in told:  # each process tells of hundreds of parameters
        seen = told["recording"]
        counted = [
            {key: process[key] for key in ("rank", "world_size", "pid", "counts")}
            for process in seen["processes"]
        ]
        told["recording"] = {**seen, "processes": counted, "kept": sorted(seen["kept"])}
    return ToolAnswer(fit(told, SUMMARY_CHARS))


def extract_training_metrics(
    roots: Roots,
    paths: Sequence[str] = (),
    names: Sequence[str] = (),
    points: int = 100,
    context: str | None = None,
    max_time_s: float = MAX_TIME_S,
) -> ToolAnswer:
    """Return metrics under their canonical names, thinned so that every extreme stays."""
    from traindx.agent.metrics import extract

    run = open_granted(roots, paths, context=context, max_time_s=max_time_s)
    return ToolAnswer(strict(extract(run, names, points)))


def visualize_loss_curve(
    roots: Roots,
    paths: Sequence[str] = (),
    metric: str | None = None,
    context: str | None = None,
    max_time_s: float = MAX_TIME_S,
) -> ToolAnswer:
    """Draw the losses, or one metric, with the onset of the trouble marked."""
    from traindx.agent.metrics import alone, describe

    limit = Deadline.after(max_time_s)
    run = open_granted(roots, paths, context=context, max_time_s=max_time_s)
    diagnosis = api.diagnose(run, max_time_s=limit.left_s)
    shown = run if metric is None else alone(run, metric)
    told = describe(shown, diagnosis)
    png = _drawn(shown, diagnosis)
    if png is None:
        told["chart"] = _charted(shown, diagnosis)
    return ToolAnswer(strict(told), png)


def analyze_architecture(
    roots: Roots,
    paths: Sequence[str] = (),
    context: str | None = None,
    detail: Detail = "summary",
    max_time_s: float = MAX_TIME_S,
) -> ToolAnswer:
    """Return the parameters of a model by block, and what is out of balance among them."""
    from traindx.agent.parameters import analyze

    limit = Deadline.after(max_time_s)
    run = open_granted(roots, paths, context=context, max_time_s=max_time_s)
    diagnosis = api.diagnose(run, max_time_s=limit.left_s)
    told = strict(analyze(run, diagnosis))
    return ToolAnswer(fit(told, SUMMARY_CHARS if detail == "summary" else FULL_CHARS))


TOOLS: Mapping[str, Callable[..., ToolAnswer]] = {
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


def call(name: str, roots: Roots, arguments: Mapping[str, Any]) -> ToolAnswer:
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
    max_time_s: float = MAX_TIME_S,
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
            max_time_s=max_time_s,
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


def _told(diagnosis: Diagnosis, detail: Detail) -> ToolAnswer:
    told = strict(diagnosis.to_dict())
    return ToolAnswer(summarise_diagnosis(told) if detail == "summary" else fit(told, FULL_CHARS))


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
    from traindx.report.drawn_curves import first_onset, headline_curves

    curves = headline_curves(run)
    rows = draw(curves, CHART_WIDTH, first_onset(run, diagnosis, curves), UNICODE)
    return "\n".join("".join(text for text, _ in row).rstrip() for row in rows)
