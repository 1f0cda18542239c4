"""Charts made of characters: a curve in dots and a sparkline, as plain cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traindx.model.run import Floats, Series
from traindx.report.drawn_curves import (
    Onset,
    broken_stretches,
    finite_values,
    span_of,
    thin,
    wants_log,
)
from traindx.report.words import number, step

Cell = tuple[str, str]  # characters and what they are: curve, second, onset, broken, label
Row = tuple[Cell, ...]

HEIGHT = 8
CALM = 0.1  # share of the value below which a change is drawn small
ENOUGH = 4000  # points; more than that no terminal can tell apart
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters to draw with."""

    has_dots: bool
    curve: str
    second: str
    onset: str
    broken: str
    blocks: str
    gap: str


UNICODE = Glyphs(True, "⠒⠒", "o", "¦", "░", "▁▂▃▄▅▆▇█", "×")
ASCII = Glyphs(False, "*", "o", "|", "#", "_.-=+*%#", "x")


@dataclass(frozen=True, slots=True)
class Scale:
    """The vertical axis: a value's height between 0 and 1, and back."""

    low: float
    high: float
    is_log: bool

    def fraction(self, values: Floats) -> Floats:
        # halves, because the difference of two huge numbers is no number
        low, high = self.low / 2, self.high / 2
        shown = values / 2
        if self.is_log:
            low, high = float(np.log10(self.low)), float(np.log10(self.high))
            shown = np.log10(np.maximum(values, self.low))
        if not high > low:
            return np.full(len(values), 0.5)
        # one rounding below zero or above one would leave the canvas
        return np.clip((shown - low) / (high - low), 0.0, 1.0)

    def value_at(self, fraction: float) -> float:
        if fraction in (0.0, 1.0):
            return self.high if fraction else self.low
        if self.is_log:
            low, high = np.log10(self.low), np.log10(self.high)
            return float(10.0 ** (low + fraction * (high - low)))
        return float(self.low * (1 - fraction) + self.high * fraction)


def scale_of(curves: Sequence[Series]) -> Scale | None:
    """Return the axis that shows all of these curves, or None where nothing is a number."""
    values = finite_values(curves)
    if not len(values):
        return None
    if wants_log(curves):
        positive = values[values > 0]
        return Scale(float(positive.min()), float(positive.max()), True)
    return _linear(float(values.min()), float(values.max()))


def _linear(low: float, high: float) -> Scale:
    """A loss that does not move has to look like one: noise alone never fills the axis."""
    least = CALM * max(abs(low), abs(high))
    if high / 2 - low / 2 >= least / 2:
        return Scale(low, high, False)
    middle = low / 2 + high / 2
    return Scale(middle - least / 2, middle + least / 2, False)


class _Canvas:
    """Characters and their roles, written from the back to the front."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self.chars = np.full((height, width), " ", dtype="<U1")
        self.roles = np.full((height, width), "blank", dtype="<U8")

    def put(self, row: int, column: int, char: str, role: str) -> None:
        self.chars[row, column] = char
        self.roles[row, column] = role

    def fill(self, column: int, char: str, role: str) -> None:
        self.chars[:, column] = char
        self.roles[:, column] = role

    def row(self, index: int) -> Row:
        cells: list[Cell] = []
        for char, role in zip(self.chars[index], self.roles[index], strict=True):
            if cells and cells[-1][1] == str(role):
                cells[-1] = (cells[-1][0] + str(char), str(role))
            else:
                cells.append((str(char), str(role)))
        return tuple(cells)


def draw(
    curves: Sequence[Series],
    width: int,
    onset: Onset | None,
    glyphs: Glyphs,
    height: int = HEIGHT,
) -> list[Row]:
    """Draw one or two curves with the onset and the broken stretches marked, labels included."""
    scale = scale_of(curves)
    labels = _value_labels(scale, height)
    gutter = max(len(label) for label in labels) + 1
    canvas = _Canvas(max(width - gutter, 10), height)
    low, high = span_of(curves)
    for stretch in broken_stretches(curves[0]):
        first = _column(stretch.start, low, high, canvas.width)
        last = _column(stretch.end, low, high, canvas.width)
        for column in range(first, last + 1):
            canvas.fill(column, glyphs.broken, "broken")
    if onset is not None:
        canvas.fill(_column(onset.step, low, high, canvas.width), glyphs.onset, "onset")
    if scale is not None:
        _draw_curve(canvas, thin(curves[0], ENOUGH), scale, (low, high), glyphs)
        for curve in curves[1:]:
            _draw_marks(canvas, thin(curve, ENOUGH), scale, (low, high), glyphs)
    rows = [
        ((f"{label:>{gutter - 1}} ", "label"), *canvas.row(i)) for i, label in enumerate(labels)
    ]
    rows.append(_step_labels(curves[0].axis, low, high, gutter, canvas.width))
    if onset is None:
        return rows
    at = _column(onset.step, low, high, canvas.width)
    return [_onset_label(onset, at, gutter, canvas.width), *rows]


def _column(at: float, low: float, high: float, width: int) -> int:
    if not high > low:
        return width // 2
    # quarters, because the span of two huge steps is no number
    fraction = (at / 4 - low / 4) / (high / 4 - low / 4)
    return min(max(int(fraction * (width - 1) + 0.5), 0), width - 1)


def _draw_curve(
    canvas: _Canvas, curve: Series, scale: Scale, span: tuple[float, float], glyphs: Glyphs
) -> None:
    across, down = (2, 4) if glyphs.has_dots else (1, 1)
    columns, rows = canvas.width * across, canvas.height * down
    lit = np.zeros((rows, columns), dtype=bool)
    previous: tuple[int, int] | None = None
    heights = scale.fraction(np.where(curve.is_finite, curve.values, scale.low))
    for i, is_number in enumerate(curve.is_finite):
        if not is_number:
            previous = None
            continue
        x = _column(float(curve.steps[i]), *span, columns)
        y = int((1 - heights[i]) * (rows - 1) + 0.5)
        _join(lit, previous or (x, y), (x, y))
        previous = (x, y)
    for row, column in zip(*np.nonzero(_cells(lit, across, down)), strict=True):
        dots = lit[row * down : (row + 1) * down, column * across : (column + 1) * across]
        char = chr(0x2800 + int(_DOTS[dots].sum())) if glyphs.has_dots else glyphs.curve
        canvas.put(int(row), int(column), char, "curve")


def _cells(lit: NDArray[np.bool_], across: int, down: int) -> NDArray[np.bool_]:
    rows, columns = lit.shape
    blocks = lit.reshape(rows // down, down, columns // across, across)
    return np.asarray(blocks.any(axis=(1, 3)), dtype=np.bool_)


def _join(lit: NDArray[np.bool_], start: tuple[int, int], end: tuple[int, int]) -> None:
    length = max(abs(end[0] - start[0]), abs(end[1] - start[1])) + 1
    xs = np.linspace(start[0], end[0], length).round().astype(int)
    ys = np.linspace(start[1], end[1], length).round().astype(int)
    lit[ys, xs] = True


def _draw_marks(
    canvas: _Canvas, curve: Series, scale: Scale, span: tuple[float, float], glyphs: Glyphs
) -> None:
    """Draw the second curve as single marks: apart from the first one without any colour."""
    last = -3
    numbers = curve.take(curve.is_finite)
    for at, height in zip(numbers.steps, scale.fraction(numbers.values), strict=True):
        x = _column(float(at), *span, canvas.width)
        if x - last < 3 and x != canvas.width - 1:
            continue
        canvas.put(int((1 - height) * (canvas.height - 1) + 0.5), x, glyphs.second, "second")
        last = x


def _value_labels(scale: Scale | None, height: int) -> list[str]:
    labels = [""] * height
    if scale is None:
        return labels
    if scale.high > scale.low:
        labels[0] = number(scale.value_at(1.0))
        labels[-1] = number(scale.value_at(0.0))
    middle = height // 2 - 1
    labels[middle] = _middle_label(scale, 1 - middle / (height - 1))
    return labels


def _middle_label(scale: Scale, fraction: float) -> str:
    value = scale.value_at(fraction if scale.high > scale.low else 0.5)
    return f"{value:.2g}".replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def _step_labels(axis: str, low: float, high: float, gutter: int, width: int) -> Row:
    first, last = f"{axis} {step(low)}", step(high)
    if low == high or len(first) + len(last) + 1 > width:
        return ((" " * gutter + first[:width], "label"),)
    return ((" " * gutter + first + last.rjust(width - len(first)), "label"),)


def _onset_label(onset: Onset, column: int, gutter: int, width: int) -> Row:
    text = f"onset: {onset.text}"[:width]
    start = min(max(column - len(text) // 2, 0), width - len(text))
    return ((" " * (gutter + start) + text, "onset"),)


def sparkline(values: Floats, width: int, glyphs: Glyphs = UNICODE) -> str:
    """Return values as a row of blocks; a stretch without any number shows as gaps."""
    if not len(values):
        return ""
    parts = np.array_split(values, min(width, len(values)))
    means = np.array([_mean(part) for part in parts])
    known = means[np.isfinite(means)]
    if not len(known):
        return glyphs.gap * len(means)
    if known.max() / 2 - known.min() / 2 <= 1e-9 * np.abs(known).max():
        means = np.where(np.isfinite(means), known[0], means)  # rounding is no course
        known = known[:1]
    scale = Scale(float(known.min()), float(known.max()), False)
    heights = scale.fraction(np.where(np.isfinite(means), means, scale.low))
    top = len(glyphs.blocks) - 1
    return "".join(
        glyphs.blocks[int(h * top + 0.5)] if np.isfinite(m) else glyphs.gap
        for m, h in zip(means, heights, strict=True)
    )


def _mean(part: Floats) -> float:
    known = part[np.isfinite(part)]
    return float(np.sum(known / len(known))) if len(known) else float("nan")
