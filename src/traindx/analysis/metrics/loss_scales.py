"""The scale of a gradient scaler and the steps that it skips."""

import re
from itertools import pairwise

import numpy as np

from traindx.model.run import Event, Run, Series

USELESS = 1.0  # at a scale of one nothing is left to scale; healthy scales stay above a hundred
REDUCED = re.compile(r"(?i)reducing (?:loss scale )?to ([\d.e+-]*\d)")  # apex, and DeepSpeed
HALVINGS = 6  # in the last part of the run, without a doubling between them
FEW = 5  # points in a row, before a scale means anything
AT_THE_FLOOR = 4  # skips in a row at a scale of one: what overflows there overflows for good
SMALL = 4.0  # a scale that a scaler at work never comes near, and that halves on
ATTEMPT = re.compile(r"(?i)attempted loss scale: ?([\d.e+-]+)")  # DeepSpeed, at each skipped step


def skips_to_the_end(run: Run, skips: list[Event]) -> bool:
    """Tell whether steps are skipped up to the end, at a scale of next to nothing."""
    loss = run.main_loss()
    last = skips[-1].step
    told = [float(m[1]) for e in skips if (m := REDUCED.search(e.text)) is not None]
    if told and told[-1] > USELESS:
        return False  # a scaler tries a higher scale now and then, and takes it back
    return loss is None or last is None or last >= 0.9 * float(loss.steps[-1])


def collapse_start(scale: Series) -> int | None:
    """Return the point from which on a scale only fell, to next to nothing."""
    values = scale.values
    if not len(values):
        return None
    top, end = float(values.max()), float(values[-1])
    falls = np.flatnonzero(np.diff(values) < 0)
    rises = np.flatnonzero(np.diff(values) > 0)
    run_of_falls = falls[falls > (rises[-1] if len(rises) else -1)]
    # a log that begins late shows the last of the halvings only; a weight that fades is no scale
    halves = values[run_of_falls + 1] <= 0.5 * values[run_of_falls]
    is_halved = len(run_of_falls) >= HALVINGS and bool(np.all(halves))
    # steps that were skipped are not told: what is left of a scaler's are powers of two
    is_scaler = bool(np.all(np.frexp(values)[0] == 0.5))
    is_gone = end <= USELESS and (top >= 100 * USELESS or is_halved or is_scaler)
    # logs are sparse: one logged fall may stand for many halvings
    halvings = np.log2(top / end) if end > 0 else np.inf
    is_fallen = is_gone and halvings >= HALVINGS and len(run_of_falls) > 0
    return int(run_of_falls[0]) if is_fallen else None


def skips_at_the_floor(scale: Series, skips: list[Event]) -> list[Event]:
    """Return the last skips where nothing is left to scale, if each logged point is such a skip."""
    values = scale.finite().values[-FEW:]
    last = [e for e in skips if (m := ATTEMPT.search(e.text)) and float(m[1]) <= USELESS][-FEW:]
    is_above = bool((values > USELESS).any())
    return [] if is_above or min(len(values), len(last)) < AT_THE_FLOOR else last


def halved_to(skips: list[Event]) -> float | None:
    """Return where skips in a row end, each from where the last one left the scale."""
    steps = [
        (float(a[1]), float(b[1]))
        for e in skips[-FEW:]
        if (a := ATTEMPT.search(e.text)) and (b := REDUCED.search(e.text))
    ]
    is_chain = all(before[1] == after[0] for before, after in pairwise(steps))
    is_small = len(steps) >= FEW and is_chain and USELESS < steps[-1][1] <= SMALL
    return steps[-1][1] if is_small else None


def is_searching(run: Run) -> bool:
    """A scale that is far above one and still falling: the scaler is at work."""
    scale = run.get("loss_scale")
    return scale is not None and len(scale) > 1 and scale.values[-2] > scale.last >= 2.0
