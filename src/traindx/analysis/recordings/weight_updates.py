"""How far the steps of a recorded process move its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, log

import numpy as np

from traindx.analysis.recordings.traces import Trace, latest_optimizers
from traindx.model.recording import Process, Sample


def update_ratios(
    traces: Sequence[Trace], over: Callable[[list[float]], float]
) -> list[tuple[Sample, float]]:
    """Return the change of the weights over their norm, by sample; `over` picks a matrix."""
    found: dict[int, tuple[Sample, list[float]]] = {}
    for trace in map(Trace.of_owner, traces):
        for sample, ratio in zip(trace.samples, trace.ratios, strict=True):
            if ratio is not None and isfinite(ratio):
                found.setdefault(sample.line, (sample, []))[1].append(ratio)
    return [(sample, float(over(ratios))) for sample, ratios in found.values()]


def growth(traces: Sequence[Trace], enough: int = 1) -> float:
    """Return how many times their first norm the weights reach, in the middle matrix."""
    known = [t.norms for t in traces if len(t.norms) >= enough and t.norms[0] > 0.0]
    return float(np.median([max(norms) / norms[0] for norms in known])) if known else 1.0


def travelled(traces: Sequence[Trace], steps: int, enough: int) -> float | None:
    """Return the change over a run if all steps went the same way, of the matrix that moves most.

    It is in units of the norm, from the mean of the sampled steps, of which there must be enough.
    """
    owned = ((r for r in t.of_owner().ratios if r is not None and isfinite(r)) for t in traces)
    means = [float(np.mean(ratios)) for ratios in map(list, owned) if len(ratios) >= enough]
    return max(means) * steps if means else None


def uses_only(process: Process, *kinds: str) -> bool:
    """Tell whether every optimizer is of one of the kinds, named by a part of the name."""
    types = [o.type.lower() for o in latest_optimizers(process)]
    return bool(types) and all(any(kind in type for kind in kinds) for type in types)


def guess_loss(process: Process) -> float | None:
    """Return the loss of a guess, where one cross-entropy over a few classes is all of the loss."""
    given = [i for s in process.samples for i in s.losses]
    classes = {i.classes for i in given if i.loss in ("cross_entropy", "nll_loss")}
    is_alone = all(len(s.losses) == 1 for s in process.samples)
    return log(min(classes)) if is_alone and len(classes) == 1 and min(classes) >= 2 else None
