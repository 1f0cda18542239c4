"""Rectified layers of a recorded run whose units give zero for every example."""

from math import isfinite

from traindx.analysis.recordings.observations import is_sound, late_samples, operation, rows
from traindx.analysis.recordings.traces import Trace, traces_of
from traindx.model.recording import Activation, Process, Sample

ENOUGH = 3  # late samples
EXAMPLES = 16  # of a batch; a unit may be silent for fewer
CONSTANT = 1e-3  # outputs that differ by less do not depend on the input
UNITS = 8  # of a layer
HALF = 0.5  # of the units; as many may be silent in a fresh network
SeenLayer = list[tuple[Sample, Activation]]


def samples_of_large_batches(process: Process) -> tuple[Sample, ...]:
    """The late samples; all there are where these are few, which is the more to ask of a layer.

    The last batch of a pass may be small, and says less than the others.
    """
    late = late_samples(process)
    large = [s for s in process.samples if all(map(is_sound, s.losses)) and _is_large(s)]
    kept = tuple(s for s in late if _is_large(s))
    return tuple(large) if late and len(kept) < ENOUGH else kept


def _is_large(sample: Sample) -> bool:
    return all(rows(a.shape) >= EXAMPLES for a in sample.activations if a.dead == a.dead)


def relu_layers(samples: tuple[Sample, ...]) -> dict[str, SeenLayer]:
    """Return the rectified outputs by layer and size; a layer may be used several times."""
    found: dict[tuple[int, str, int], SeenLayer] = {}
    for sample in samples:
        for place, activation in enumerate(sample.activations):
            is_relu = operation(activation.op) in ("relu", "threshold")
            is_wide = len(activation.shape) > 1 and max(activation.shape[1:]) >= UNITS
            if is_relu and activation.dead == activation.dead and is_wide:
                key = (sample.optimizer, activation.name, place)
                found.setdefault(key, []).append((sample, activation))
    return {name: seen for (_, name, _), seen in found.items()}


def began_alive(process: Process) -> bool:
    """Tell whether most units fired at the very first step: then the training killed them."""
    first = process.samples[0]
    shares = [a.dead for a in first.activations if operation(a.op) in ("relu", "threshold")]
    known = [dead for dead in shares if isfinite(dead)]
    return first.step <= 1 and bool(known) and max(known) < HALF


def _is_constant(late: tuple[Sample, ...]) -> bool:
    spreads = [i.spread for s in late for i in s.losses]
    return bool(spreads) and all(spread < CONSTANT for spread in spreads)


def effect_of_dead_layer(process: Process, late: tuple[Sample, ...]) -> str:
    """What shows that nothing passes a silent layer, in words; nothing if that is not seen."""
    if _is_constant(late):
        return ", and the output is the same for every input"
    lines = {s.line for s in late}
    owned = [t.of_owner() for t in traces_of(process) if t.is_owned and t.is_matrix]
    starved = [_is_starved(trace, lines) for trace in owned]
    if starved and starved[0]:
        return ", and the weights of the first layer get a gradient of zero"
    if sum(starved) > HALF * len(starved):
        return f", and {sum(starved)} of {len(starved)} weights get a gradient of zero"
    return ""


def _is_starved(trace: Trace, lines: set[int]) -> bool:
    """Tell whether a weight got gradients in those samples, each of them exactly zero."""
    pairs = zip(trace.samples, trace.grads, strict=True)
    grads = [g for s, g in pairs if s.line in lines and g is not None]
    return len(grads) >= ENOUGH and not any(grads)
