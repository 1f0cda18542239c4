"""Step counters that start again in every epoch, as ones that count on through the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traindx.model.run import Floats, Ints, Series


def unwrap_steps(series: Series) -> Series:
    """Turn a step that starts again in every epoch into one that counts on through the run."""
    steps = unwrap(series.steps, series.epochs)
    return series if steps is series.steps else replace(series, steps=steps)


@np.errstate(all="ignore")
def unwrap(steps: Floats, epochs: Floats) -> Floats:
    """Return counters that start again in every epoch as ones that count on, others as they are.

    A run that was started again from scratch counts its epochs anew too, and stays as it is.
    """
    has_epochs = len(epochs) == len(steps) and bool(np.isfinite(epochs).all())
    starts = _segment_starts(steps, epochs if has_epochs else None)
    if len(starts) < 2 or not np.isfinite(steps).all():
        return steps
    ends = np.append(starts[1:], len(steps))
    firsts, lasts = steps[starts], steps[ends - 1]
    if bool(np.any(firsts > firsts[0] + max(1.0, 0.05 * float(lasts.max())))):
        return steps
    is_even = len(starts) > 2 and bool(np.all(lasts[:-1] >= 0.8 * lasts.max()))
    if not (bool(np.all(np.diff(epochs[starts]) > 0)) if has_epochs else is_even):
        return steps
    strides = np.diff(steps)
    stride = float(np.median(strides[strides > 0])) if bool(np.any(strides > 0)) else 0.0
    if has_epochs and bool(np.all(np.floor(epochs[ends - 1]) == np.floor(epochs[starts]))):
        # counting from 0, the last step of an epoch is one short of its length
        length = float(lasts.max()) + (stride if float(firsts.min()) <= 0.0 else 0.0)
        offsets = np.floor(epochs[starts] - epochs[0]) * length
    else:
        offsets = np.cumsum(np.append(0.0, lasts[:-1] - firsts[1:] + stride))
    return np.asarray(steps + np.repeat(offsets, ends - starts), dtype=np.float64)


def _segment_starts(steps: Floats, epochs: Floats | None) -> Ints:
    """Return where a counter begins anew: it goes back, or stays as the epoch moves on."""
    if len(steps) < 2:
        return np.zeros(min(1, len(steps)), dtype=np.int64)
    begins = steps[1:] < steps[:-1]
    if epochs is not None:
        begins |= (steps[1:] == steps[:-1]) & (epochs[1:] >= epochs[:-1] + 1)
    return np.concatenate([[0], np.flatnonzero(begins) + 1]).astype(np.int64)
