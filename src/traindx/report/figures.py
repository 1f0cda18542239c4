"""The curves as PNG files. matplotlib is imported here alone, and only when a figure is wanted."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traindx.errors import MissingExtra
from traindx.model.findings import Diagnosis, Experiment
from traindx.model.run import Floats, Run, Series
from traindx.model.trials import arms_of
from traindx.report import trial_words, words
from traindx.report.drawn_curves import (
    Onset,
    broken_stretches,
    first_onset,
    headline_curves,
    plottable,
    thin,
    wants_log,
)

POINTS = 20_000
COLUMNS = 400
LAYERS = 60
EXPERIMENTS = 12
HUGE = 1e30  # beyond it the axis of a figure overflows
INK, ACCENT, WARM, ALARM = "#3d4451", "#1f6feb", "#c2620e", "#c4314b"


def draw_loss(run: Run, diagnosis: Diagnosis, path: Path) -> bool:
    """Draw the losses with the onset and the broken stretches; False where there is nothing."""
    curves = headline_curves(run)
    if not curves:
        return False
    figure = _new_figure(4.5)
    axes = figure.add_subplot()
    _draw_curves(axes, curves, first_onset(run, diagnosis, curves))
    axes.set_title(_text(run.name, 80), loc="left", fontsize=11, color=INK)
    _save(figure, path)
    return True


def draw_gradients(run: Run, diagnosis: Diagnosis, path: Path) -> bool:
    """Draw the gradient norm and the norms by layer; False where there are none."""
    total = run.get("grad_norm")
    curves = [c for c in [plottable(total)] if len(c)] if total is not None else []
    layers = [s for s in map(plottable, run.matching("layers/*/grad_norm")) if len(s)][:LAYERS]
    parts = bool(curves) + bool(layers)
    if not parts:
        return False
    figure = _new_figure(3.4 * bool(curves) + min(2.4 + 0.16 * len(layers), 9.0) * bool(layers))
    if curves:
        axes = figure.add_subplot(parts, 1, 1)
        _draw_curves(axes, curves, first_onset(run, diagnosis, curves))
    if layers:
        _draw_layers(figure, figure.add_subplot(parts, 1, parts), layers)
    _save(figure, path)
    return True


def draw_experiments(run: Run, diagnosis: Diagnosis, path: Path) -> bool:
    """Draw both sides of each experiment, every seed; False where none has a curve."""
    drawn = [e for e in diagnosis.experiments if trial_words.curves_of(e)][:EXPERIMENTS]
    if not drawn:
        return False
    figure = _new_figure(3.2 * len(drawn))
    for i, experiment in enumerate(drawn):
        _draw_trials(figure.add_subplot(len(drawn), 1, i + 1), experiment)
    _save(figure, path)
    return True


def _draw_trials(axes: Any, experiment: Experiment) -> None:
    control, changed = arms_of(experiment)
    curves = trial_words.curves_of(experiment)
    is_log = wants_log(curves)
    ceiling = trial_words.ceiling_of(experiment)
    # dashes above a line hide nothing
    for arm, colour, dashes in ((changed, ACCENT, "-"), (control, WARM, "--")):
        for i, trial in enumerate(arm.trials):
            shown = thin(plottable(trial_words.series_of(trial, arm.label, ceiling)), POINTS)
            if len(shown):
                label = arm.label if i == 0 else None
                values = _drawable(shown, is_log)
                steps = np.clip(shown.steps, -HUGE, HUGE)
                axes.plot(steps, values, colour, ls=dashes, lw=1.2, label=label)
    _mark_broken(axes, curves[0])
    if ceiling is not None:
        axes.axhline(ceiling, color=WARM, lw=0.8, ls=":", label=f"cut at {words.number(ceiling)}")
    title = f"{experiment.cause}: {experiment.verdict.value} ({experiment.change})"
    axes.set_title(_text(title, 110), loc="left", fontsize=10, color=INK)
    _furnish(axes, curves[0].axis, is_log)


def _new_figure(height: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("drawing figures", "figures") from None
    # a bare Figure draws with Agg and leaves the user's own backend and state alone
    return Figure(figsize=(9, max(height, 2.5)), dpi=110, layout="constrained")


def _save(figure: Any, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a character that the font lacks is drawn as a box
        figure.savefig(path, format="png")


def _text(text: object, limit: int = 60) -> str:
    # a dollar sign would start a formula
    return words.clean(text, limit).replace("$", r"\$")


def _label(name: str) -> str:
    # a legend leaves out what has no name or one that starts with an underscore
    text = _text(name)
    return text if text and not text.startswith("_") else f" {text}"


def _draw_curves(axes: Any, curves: Sequence[Series], onset: Onset | None) -> None:
    is_log = wants_log(curves)
    for curve, colour, mark in zip(curves, (ACCENT, WARM), ("", "o"), strict=False):
        shown = thin(curve, POINTS)
        # a single point makes no line
        style = {"marker": mark or ("o" if len(shown) < 3 else ""), "markersize": 4}
        steps = np.clip(shown.steps, -HUGE, HUGE)
        axes.plot(
            steps, _drawable(shown, is_log), colour, lw=1.3, label=_label(curve.name), **style
        )
    _mark_broken(axes, curves[0])
    if onset is not None:
        axes.axvline(onset.step, color=ALARM, lw=1.2, ls="--", label=f"onset: {_text(onset.text)}")
    _furnish(axes, curves[0].axis, is_log)


def _furnish(axes: Any, axis: str, is_log: bool) -> None:
    if is_log:
        axes.set_yscale("log")
    axes.set_xlabel(_text(axis), color=INK)
    axes.grid(True, color="#e4e7ec", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)


def _drawable(curve: Series, is_log: bool) -> Floats:
    values = np.where(curve.is_finite, np.clip(curve.values, -HUGE, HUGE), np.nan)
    if not is_log:
        return values
    least = float(values[np.isfinite(values) & (values > 0)].min(initial=HUGE))
    return np.where(np.isfinite(values), np.maximum(values, max(least, 1 / HUGE)), np.nan)


def _mark_broken(axes: Any, curve: Series) -> None:
    for i, stretch in enumerate(broken_stretches(curve)[:50]):
        start, end = (min(max(at, -HUGE), HUGE) for at in (stretch.start, stretch.end))
        label = f"{stretch.kind} from {curve.axis} {words.step(stretch.start)}" if i == 0 else None
        if end > start:
            axes.axvspan(start, end, color=ALARM, alpha=0.12, lw=0, label=label)
        else:
            axes.axvline(start, color=ALARM, alpha=0.3, lw=1.0, label=label)


def _draw_layers(figure: Any, axes: Any, layers: Sequence[Series]) -> None:
    """Draw one row per layer, in the order of the model, as the logarithm of its norm."""
    low = min(float(s.steps[0]) for s in layers)
    high = max(float(s.steps[-1]) for s in layers)
    grid = np.stack([_binned(s, low, high) for s in layers])
    extent = (low, high if high > low else low + 1, len(layers) - 0.5, -0.5)
    shown = np.ma.masked_invalid(grid)
    image = axes.imshow(shown, aspect="auto", extent=extent, cmap="viridis", interpolation="none")
    axes.set_facecolor("#f3d4da")  # no number there
    names = [_text(s.name.removeprefix("layers/").removesuffix("/grad_norm"), 32) for s in layers]
    axes.set_yticks(range(len(layers)), names, fontsize=8)
    axes.set_xlabel(_text(layers[0].axis), color=INK)
    axes.set_title("gradient norm by layer (log10)", loc="left", fontsize=10, color=INK)
    figure.colorbar(image, ax=axes, pad=0.01)


def _binned(series: Series, low: float, high: float) -> Floats:
    columns = min(COLUMNS, max(len(series), 1))
    span = high / 4 - low / 4 if high > low else 1.0
    at = ((series.steps / 4 - low / 4) / span * (columns - 1)).astype(np.int64)
    row = np.full(columns, np.nan)
    last = np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(series.is_finite, np.log10(np.abs(series.values)), np.nan)
    known: dict[int, float] = {int(i): float(v) for i, v in zip(at, logs, strict=True)}
    for column in range(columns):
        last = known.get(column, last)
        row[column] = last if np.isfinite(last) else np.nan
    spread: Floats = np.interp(np.linspace(0, columns - 1, COLUMNS), np.arange(columns), row)
    return spread
