"""What every report says of probes: a row for each change, the floors, and what was left out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from traindx.model.probes import Effect, Probe, Probing
from traindx.model.trials import number
from traindx.report import words

MARKS = {Effect.HELPS: "✓", Effect.HURTS: "✗", Effect.NONE: "·", Effect.OPEN: "?"}
HEAD = ("change", "metric", "as it is", "changed", "noise", "seeds", "says")
FLOORS = {
    "constant": "constant prediction",
    "linear": "linear model",
    "nearest_neighbour": "nearest neighbours",
    "one_batch": "one batch learnt by heart (its loss)",
    "shuffled_labels": "labels shuffled",
}
LEFT_OUT_SHOWN = 4


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """A probe as a row of a table, its cells as plain text."""

    effect: Effect
    cells: tuple[str, ...]


def rows_of(probing: Probing) -> list[ProbeRow]:
    """Return a row for each change that was tried."""
    return [ProbeRow(p.effect, _cells(p)) for p in probing.probes]


def _cells(probe: Probe) -> tuple[str, ...]:
    return (
        words.clean(probe.change, 120),
        words.clean(probe.metric, 60),
        _level(probe.before),
        _level(probe.after),
        _level(probe.noise),
        str(probe.seeds),
        _says(probe),
    )


def _level(value: float) -> str:
    return number(value) if math.isfinite(value) else "NaN or Inf" if math.isinf(value) else "–"


def _says(probe: Probe) -> str:
    if probe.helps:
        return f"helps: {words.clean(probe.cause, 80)}"
    said = probe.effect.value
    return f"{said}: {words.clean(probe.says, 200)}" if probe.says else said


def floors_line(probing: Probing) -> str:
    """Return the floors in one line; empty where none is known."""
    if not probing.floors:
        return ""
    told = (f"{FLOORS.get(n, n)} {number(v)}" for n, v in probing.floors.items())
    level = f"this run {number(probing.level)}; " if math.isfinite(probing.level) else ""
    return f"{words.clean(probing.metric, 60)}: {level}{', '.join(told)}"


def left_out_line(probing: Probing, *, verbose: bool = True) -> str:
    """Return what was not tried, and why, in one line."""
    told = [f"{words.clean(c, 80)} ({words.clean(w, 120)})" for c, w in probing.left_out]
    if verbose or len(told) <= LEFT_OUT_SHOWN:
        return "; ".join(told)
    rest = len(told) - LEFT_OUT_SHOWN
    return f"{'; '.join(told[:LEFT_OUT_SHOWN])}; and {rest} more (--verbose)"
