"""What was found in the artifacts of a run, without any judgement: `traindx inspect`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from traindx.model.recording import Recording
from traindx.model.run import Architecture, Run, Series
from traindx.report import incidents, recorded, words
from traindx.report.chart import Glyphs, draw, sparkline
from traindx.report.digest import blocks, digest
from traindx.report.drawn_curves import headline_curves, plottable, wants_log
from traindx.report.incidents import Kept
from traindx.report.json import strict
from traindx.report.terminal import WIDTH, glyphs_of, row_text, show

SPARK = 16
SERIES_SHOWN = 40
SETTINGS_SHOWN = 40
EVENTS_SHOWN = 12
BLOCKS_SHOWN = 30


def to_dict(run: Run, kept: Kept | None = None) -> dict[str, Any]:
    """Return what was found as JSON values; `kept` are the batches that a recording kept."""
    found = {
        "name": run.name,
        "artifacts": [
            {"path": a.path, "reader": a.reader, "warnings": list(a.warnings)}
            for a in run.artifacts
        ],
        "metrics": [_metric_dict(s) for s in run.series.values()],
        "settings": [
            {"key": s.key, "value": _plain(s.value), "artifact": s.artifact, "locator": s.locator}
            for s in run.config.settings
        ],
        "events": [
            {"kind": e.kind, "text": e.text, "artifact": e.artifact, "locator": e.locator}
            for e in run.events
        ],
        "failures": [
            {"type": f.type, "message": f.message, "artifact": f.artifact, "locator": f.locator}
            for f in run.failures
        ],
        "sources": [s.path for s in run.sources],
        "parameters": _parameters_dict(run.architecture),
    }
    if run.recording is not None:
        found["recording"] = _recording_dict(run.recording, kept or {})
    made: dict[str, Any] = strict(found)
    return made


def _plain(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def _metric_dict(series: Series) -> dict[str, Any]:
    figures = digest(series)
    return {
        "name": series.name,
        "artifact": series.origin.artifact,
        "called": series.origin.name,
        "points": figures.points,
        "not_numbers": figures.broken,
        "axis": figures.axis,
        "steps": [figures.first_step, figures.last_step],
        "last": figures.last,
        "min": {"value": figures.least, "at": figures.least_at},
        "max": {"value": figures.most, "at": figures.most_at},
    }


def _parameters_dict(architecture: Architecture | None) -> dict[str, Any] | None:
    if architecture is None:
        return None
    return {
        "artifact": architecture.artifact,
        "tensors": len(architecture.tensors),
        "size": sum(t.size for t in architecture.tensors),
        "blocks": [
            {"name": b.name, "tensors": b.tensors, "size": b.size} for b in blocks(architecture)
        ],
    }


def _recording_dict(recording: Recording, kept: Kept) -> dict[str, Any]:
    """Return a recording; of the steps that were looked at closely, the last one."""
    ending = recording.ending
    return {
        "ending": None if ending is None else asdict(ending),
        "processes": [
            asdict(
                replace(
                    p, samples=p.samples[-1:], epochs=p.epochs[-1:], fingerprints=(), captured=()
                )
            )
            for p in recording.processes
        ],
        "kept": {
            folder: {"tensors": [asdict(t) for t in tensors], "notes": list(notes)}
            for folder, (tensors, notes) in kept.items()
        },
    }


def print_inspection(
    run: Run, console: Console, *, verbose: bool = False, kept: Kept | None = None
) -> None:
    """Print what was found; `verbose` leaves nothing out, `kept` are batches of a recording."""
    for section in _sections(run, console, verbose, kept or {}):
        show(console, section)
        show(console, Text(""))


def _sections(run: Run, console: Console, verbose: bool, kept: Kept) -> Iterator[RenderableType]:
    glyphs, width = glyphs_of(console), min(console.width, WIDTH)
    yield _titled(f"Found in {words.clean(run.name, 80)}", _artifacts(run, verbose))
    for title, body in recorded.sections(run, verbose=verbose):
        yield _titled(title, body)
    for title, body in incidents.sections(run, kept, verbose=verbose):
        yield _titled(title, body)
    curves = headline_curves(run)
    if curves:
        rows = [row_text(row) for row in draw(curves, width - 2, None, glyphs)]
        names = "   ".join(words.clean(c.name, 40) for c in curves)
        scale = ", log scale" if wants_log(curves) else ""
        yield _titled(f"{names}{scale}", Group(*rows))
    if run.series:
        yield _titled(f"Metrics: {len(run.series)}", _metrics(run, glyphs, verbose))
    if run.architecture is not None:
        size = sum(t.size for t in run.architecture.tensors)
        yield _titled(f"Parameters: {size:,}", _parameters(run.architecture, verbose))
    if run.config.settings:
        yield _titled(f"Settings: {len(run.config.settings)}", _settings(run, verbose))
    if run.failures:
        yield _titled(f"Errors: {len(run.failures)}", _failures(run))
    if run.events:
        yield _titled(f"Events: {len(run.events)}", _events(run, verbose))
    if run.sources:
        names = ", ".join(words.clean(s.path, 80) for s in run.sources[:20])
        yield _titled(f"Source: {words.counted(len(run.sources), 'file')}", Text(names))


def _titled(title: str, body: RenderableType) -> RenderableType:
    return Group(Text(title, "bold"), Padding(body, (0, 0, 0, 2)))


def _cut(lines: list[Text], limit: int, verbose: bool) -> RenderableType:
    shown = lines if verbose else lines[:limit]
    rest = len(lines) - len(shown)
    return Group(*shown, *([Text(f"and {rest} more (--verbose)", "dim")] if rest else []))


def _artifacts(run: Run, verbose: bool) -> RenderableType:
    lines = []
    for artifact in run.artifacts:
        lines.append(Text(words.clean(artifact.path, 200)))
        lines[-1].append(f"  {words.clean(artifact.reader, 40)}", "dim")
        for warning in artifact.warnings:
            lines.append(Text(f"  warning: {words.clean(warning, 300)}", "yellow"))
    return _cut(lines or [Text("nothing was read", "dim")], 20, verbose)


def _metrics(run: Run, glyphs: Glyphs, verbose: bool) -> RenderableType:
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    metrics = list(run.series.values())
    shown = metrics if verbose else metrics[:SERIES_SHOWN]
    for series in shown:
        shape = Text(_shape(series, glyphs), "cyan")
        name = Text(words.clean(series.name, 120), "bold")
        table.add_row(shape, name.append("\n").append(_figures(series)))
    if len(metrics) > len(shown):
        return Group(table, Text(f"and {len(metrics) - len(shown)} more (--verbose)", "dim"))
    return table


def _shape(series: Series, glyphs: Glyphs) -> str:
    drawn = plottable(series)
    values = drawn.values
    if wants_log([drawn]):
        least = float(values[np.isfinite(values) & (values > 0)].min())
        values = np.where(drawn.is_finite, np.log10(np.maximum(values, least)), np.nan)
    return sparkline(values, SPARK, glyphs)


def _figures(series: Series) -> Text:
    figures = digest(series)
    text = Text(f"last {words.number(figures.last)}, min ", "not bold")
    text.append(_extreme(figures.least, figures.least_at))
    text.append(", max ").append(_extreme(figures.most, figures.most_at))
    covers = f"{figures.axis} {words.step(figures.first_step)} to {words.step(figures.last_step)}"
    text.append(f"\n{words.counted(figures.points, 'point')}, {covers}", "dim")
    if figures.broken:
        text.append(f", {figures.broken} NaN or Inf", "red")
    return text


def _extreme(value: float, at: float) -> Text:
    return Text.assemble(words.number(value), (f" at {words.step(at)}", "dim"))


def _parameters(architecture: Architecture, verbose: bool) -> RenderableType:
    total = max(sum(t.size for t in architecture.tensors), 1)
    table = Table.grid(padding=(0, 2))
    found = blocks(architecture)
    for block in found if verbose else found[:BLOCKS_SHOWN]:
        share = f"{100 * block.size / total:.1f} %"
        count = words.counted(block.tensors, "tensor")
        table.add_row(Text(words.clean(block.name, 60)), f"{block.size:,}", share, count)
    rest = 0 if verbose else max(len(found) - BLOCKS_SHOWN, 0)
    origin = Text(f"from {words.clean(architecture.artifact, 120)}", "dim")
    more = [Text(f"and {rest} more blocks (--verbose)", "dim")] if rest else []
    return Group(table, *more, origin)


def _settings(run: Run, verbose: bool) -> RenderableType:
    lines = []
    for setting in run.config.settings:
        line = Text(f"{words.clean(setting.key, 80)} = {words.clean(setting.value, 120)}")
        line.append(f"  {words.clean(setting.artifact, 80)}", "dim")
        lines.append(line)
    return _cut(lines, SETTINGS_SHOWN, verbose)


def _failures(run: Run) -> RenderableType:
    lines = []
    for failure in run.failures[:10]:
        line = Text(words.clean(failure.type, 80), "red")
        line.append(f": {words.clean(failure.message, 400)}", "")
        where = f"{words.clean(failure.artifact, 80)}: {words.clean(failure.locator, 80)}"
        line.append(f" ({where})", "dim")
        lines.append(line)
        for frame in failure.frames[-3:]:
            at = (
                f"  {words.clean(frame.file, 80)}:{frame.line} in {words.clean(frame.function, 60)}"
            )
            lines.append(Text(f"{at}  {words.clean(frame.code, 120)}", "dim"))
    return Group(*lines)


def _events(run: Run, verbose: bool) -> RenderableType:
    lines = []
    for event in run.events:
        line = Text(f"{words.clean(event.kind, 40)}: {words.clean(event.text, 200)}")
        line.append(
            f" ({words.clean(event.artifact, 80)}: {words.clean(event.locator, 80)})", "dim"
        )
        lines.append(line)
    return _cut(lines, EVENTS_SHOWN, verbose)
