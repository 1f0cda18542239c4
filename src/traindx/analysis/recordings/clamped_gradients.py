"""Gradients whose every element is cut to the same size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import median

from traindx.analysis.recordings.traces import Trace, traces_of
from traindx.model.recording import Process

ENOUGH = 5  # samples
MOST = 0.8  # of the samples of a parameter
ALIKE = 1e-3  # between sizes, relative: the sum of n equal squares, rounded
SEVERAL = 2  # parameters of different sizes: one may have equal elements by chance


@dataclass(frozen=True)
class ClampedGradients:
    """Parameters all of whose elements have a gradient of the same size, sample after sample."""

    limit: float
    traces: tuple[Trace, ...]
    ratio: float  # of an update to the weight, in the middle


def clamped_gradients(process: Process) -> ClampedGradients | None:
    """Return the gradients that are cut element by element, where every element reaches the limit.

    The norm of n elements of size c is c times the root of n, and stays so.
    """
    found = [(c, t) for t in traces_of(process) if (c := _element(t)) is not None]
    for limit, _ in found:
        same = tuple(t for c, t in found if abs(c - limit) <= ALIKE * limit)
        if len({t.size for t in same}) >= SEVERAL:
            return ClampedGradients(limit, same, _ratio(traces_of(process)))
    return None


def _element(trace: Trace) -> float | None:
    """Return the size that the elements of a gradient have in nearly all samples."""
    norms = [g for g in trace.of_owner().grads if g is not None and isfinite(g) and g > 0.0]
    if len(norms) < ENOUGH:
        return None
    middle = median(norms)
    near = [g for g in norms if abs(g - middle) <= ALIKE * middle]
    return middle / sqrt(trace.size) if len(near) >= MOST * len(norms) else None


def _ratio(traces: Iterable[Trace]) -> float:
    known = [r for t in traces for r in t.of_owner().ratios if r is not None and isfinite(r)]
    return median(known) if known else float("nan")
