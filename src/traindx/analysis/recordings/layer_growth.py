"""Activations that grow over the steps of a run, or with the depth of a fresh model."""

from collections.abc import Sequence
from math import isfinite

from traindx.analysis.recordings.observations import late_from, medians
from traindx.model.recording import Activation, Process, Sample

GREW = 1000.0  # times the spread at the first sample; trained networks grow tenfold
LARGE = 1e4  # what is smaller harms nobody
DEEP = 1e4  # times the spread of the lowest layer, at the very first sample
LAYERS = 4


def grown_layer(process: Process) -> tuple[Sequence[tuple[Sample, Activation]], float] | None:
    """Return a layer whose spread grew a thousandfold, over its samples, and its late level."""
    layers: dict[tuple[int, str, str], list[tuple[Sample, Activation]]] = {}
    for sample in process.samples:
        for activation in sample.activations:
            if isfinite(activation.std):
                key = (sample.optimizer, activation.name, activation.op)
                layers.setdefault(key, []).append((sample, activation))
    for seen in layers.values():
        before = seen[0][1].std
        late = [a.std for s, a in seen if s.step >= late_from(process)]
        if len(late) > 1 and medians(late) > max(GREW * before, LARGE) and before > 0:
            return seen, medians(late)
    return None


def grown_with_depth(process: Process) -> tuple[Activation, Activation] | None:
    """Return the lowest and the widest layer of a fresh model, if they are far apart."""
    first = process.samples[0] if process.samples else None
    # activations are listed from the loss downward
    spreads = [] if first is None else [a for a in first.activations if a.std > 0]
    if first is None or first.step > 0 or len(spreads) < LAYERS:
        return None
    lowest, highest = spreads[-1], max(spreads, key=lambda a: a.std)
    return (lowest, highest) if highest.std >= max(DEEP * lowest.std, LARGE) else None
