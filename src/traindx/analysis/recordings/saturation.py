"""Hidden tanh and sigmoid layers of a recorded run whose values sit at their flat ends."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod

from traindx.analysis.recordings.observations import has_learnt, is_sound, operation, rows
from traindx.model.recording import Activation, Process, Sample

MOST = 0.9  # of the values of a layer, or of the paths through two of them; and of the samples
CLOSED = 0.5  # of the values of a layer that counts with another one
EXAMPLES = 8
GATED = re.compile(r"LSTM|GRU|Gate|Attention|SqueezeExc|SEBlock|Highway|GLU", re.IGNORECASE)
NAMED = re.compile(
    r"gate|attn|attention|lstm|gru|rnn|alpha|mask|score|(?:^|[._])(?:mu|mean|actions?)(?:$|[._])",
    re.IGNORECASE,
)
SeenLayers = tuple[Sample, list[Activation]]


def open_share(layers: Sequence[Activation]) -> float:
    """Return the share of paths that pass a gradient through the two most closed layers."""
    return prod(1 - layer.saturated for layer in layers[:2] if layer.saturated >= CLOSED)


def has_gates(process: Process) -> bool:
    """Tell whether a model has gates, whose units are meant to saturate."""
    return any(GATED.search(m.type) for model in process.models for m in model.modules)


def _last_layers(process: Process) -> set[str]:
    """The layers that make the output of a model: the last one with parameters."""
    names = (m.parameters[-1].name for m in process.models if m.parameters)
    return {name.rsplit(".", 1)[0] for name in names} | {""}


def hidden_stacks(process: Process) -> Iterator[tuple[str, list[SeenLayers]]]:
    """Return the hidden layers below every loss that does not fall, the most closed ones first."""
    outputs = _last_layers(process)
    for owner in sorted({s.optimizer for s in process.samples}):
        if has_learnt(process, owner) is not False:
            continue
        found: dict[tuple[str, int], list[SeenLayers]] = {}
        for sample in process.samples:
            if sample.optimizer == owner and all(map(is_sound, sample.losses)):
                for key, layers in _passes(sample, outputs).items():
                    layers.sort(key=lambda layer: -layer.saturated)
                    found.setdefault(key, []).append((sample, layers))
        yield from ((op, seen) for (op, _), seen in found.items())


def _passes(sample: Sample, outputs: set[str]) -> dict[tuple[str, int], list[Activation]]:
    """Return the layers by the kind and the pass: two networks, or two passes, use one name."""
    found: dict[tuple[str, int], list[Activation]] = {}
    times: Counter[tuple[str, str]] = Counter()
    for activation in sample.activations:
        op, name = operation(activation.op), activation.name
        is_judged = op in ("tanh", "sigmoid") and rows(activation.shape) >= EXAMPLES
        if is_judged and name not in outputs and not NAMED.search(name):
            found.setdefault((op, times[name, op]), []).append(activation)
            times[name, op] += 1
    return found
