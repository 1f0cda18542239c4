"""Whether the machinery of training works: inputs, units, gradients and updates."""

from statistics import median

from traindx.analysis.recordings.observations import Term
from traindx.analysis.recordings.traces import Trace, traces_of
from traindx.model.recording import Process, Sample

EARLY = 4  # samples, from before the model has given in
STEADY = (3e-4, 5e-2)  # update over norm: neither too small nor too large to learn by
FADED = 1e-3  # smallest over largest gradient of a matrix
DEAD = 0.5  # of the units
SCALE = (0.05, 10.0)  # of an input


def is_trained_soundly(process: Process, term: Term) -> bool:
    """Tell whether inputs vary, units live, gradients flow and updates have a usual size."""
    traces = [t for t in traces_of(process) if t.parameter.is_trainable]
    is_driven = all(t.is_owned and t.has_gradient for t in traces)
    matrices = [t for t in traces if t.is_matrix]
    early = term.samples[:EARLY]
    if not matrices or not is_driven:
        return False
    return _are_steady(matrices) and all(map(_is_alive, early)) and all(map(_is_usual, early))


def _are_steady(matrices: list[Trace]) -> bool:
    ratios = [r for t in matrices for r in t.ratios[:EARLY] if r is not None]
    grads = [median(g) for t in matrices if (g := [x for x in t.grads[:EARLY] if x is not None])]
    low, high = STEADY
    is_known = bool(ratios and grads)
    return is_known and low < median(ratios) < high and min(grads) > FADED * max(grads)


def _is_alive(sample: Sample) -> bool:
    return not any(a.dead > DEAD or a.saturated > DEAD for a in sample.activations)


def _is_usual(sample: Sample) -> bool:
    low, high = SCALE
    inputs = [b for b in sample.batch if "float" in b.dtype]
    return bool(inputs) and all(low < b.std < high and abs(b.mean) < high for b in inputs)
