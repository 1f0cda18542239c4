"""Hidden units sit at the flat ends of tanh or sigmoid, and nothing is learnt."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from traindx.analysis.recordings.observations import (
    has_learnt,
    is_sound,
    operation,
    processes_of,
    rows,
    spans,
)
from traindx.examples import recorded, sampled
from traindx.model.findings import Finding, Strength, cite_record, finding
from traindx.model.recording import Activation, Model, Parameter, Process, Sample, Submodule
from traindx.registry import Findings, Run, detector

CAUSE = "saturated-activations"
MOST = 0.9  # of the values of a layer, or of the paths through two of them; and of the samples
CLOSED = 0.5  # of the values of a layer that counts with another one
ENOUGH = 4  # samples
EXAMPLES = 8
GATED = re.compile(r"LSTM|GRU|Gate|Attention|SqueezeExc|SEBlock|Highway|GLU", re.IGNORECASE)
NAMED = re.compile(
    r"gate|attn|attention|lstm|gru|rnn|alpha|mask|score|(?:^|[._])(?:mu|mean|actions?)(?:$|[._])",
    re.IGNORECASE,
)
_Seen = tuple[Sample, list[Activation]]


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Most values of a hidden tanh or sigmoid are at its ends, and the loss does not fall.

    ## What it detects
    The output of a hidden tanh or sigmoid of which 90 % or more of the values are within 3 % of the
    ends of the range, or two such layers that leave a tenth of the paths open between them, in
    nearly all samples, while late losses are not below the first one. Of several optimizers each
    is judged by its own loss, through all layers that it passes.

    ## Why it matters
    At its ends the slope is nearly 0: no gradient passes to the layers below.

    ## What to do
    Normalise the inputs, initialise for the activation (Xavier), normalise in front of it, or use
    ReLU or GELU.

    ## When it is wrong
    Gates are meant to be open or closed, actions to be taken in full, an output that is sure of
    itself is right, and a network that learns all the same is left alone.
    """
    for process in processes_of(run):
        if _is_gated(process):
            continue
        for op, seen in _stacks(process):
            flat = [(s, layers) for s, layers in seen if _open_share(layers) <= 1 - MOST]
            if len(flat) >= max(ENOUGH, MOST * len(seen)):
                yield _finding(process, op, flat, len(seen))
                return


def _finding(process: Process, op: str, flat: Sequence[_Seen], count: int) -> Finding:
    last, layers = flat[-1]
    closed = layers[:1] if layers[0].saturated >= MOST else layers[:2]
    names = " and ".join(layer.name for layer in closed)
    share = " and ".join(f"{layer.saturated:.0%}" for layer in closed)
    says = (
        f"{share} of the {op} outputs of {names} are saturated, in {len(flat)} of {count} samples, "
        f"{spans([s for s, _ in flat])}"
    )
    return finding(
        f"{share} of the {op} units of {names} are saturated",
        {CAUSE: Strength.STRONG},
        cite_record(process, last.line, says, step=float(last.step)),
        onset=flat[0][0].step,
    )


def _open_share(layers: Sequence[Activation]) -> float:
    """Return the share of paths that pass a gradient through the two most closed layers."""
    return prod(1 - layer.saturated for layer in layers[:2] if layer.saturated >= CLOSED)


def _is_gated(process: Process) -> bool:
    return any(GATED.search(m.type) for model in process.models for m in model.modules)


def _last_layers(process: Process) -> set[str]:
    """The layers that make the output of a model: the last one with parameters."""
    names = (m.parameters[-1].name for m in process.models if m.parameters)
    return {name.rsplit(".", 1)[0] for name in names} | {""}


def _stacks(process: Process) -> Iterator[tuple[str, list[_Seen]]]:
    """Return the hidden layers below every loss that does not fall, the most closed ones first."""
    outputs = _last_layers(process)
    for owner in sorted({s.optimizer for s in process.samples}):
        if has_learnt(process, owner) is not False:
            continue
        found: dict[tuple[str, int], list[_Seen]] = {}
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


def _run(
    saturated: float, *, name: str = "fc1", losses: tuple[float, float] = (2.3, 2.3), kind: str = ""
) -> Run:
    activation = Activation(name, "tanh", (64, 128), saturated=saturated)
    parameters = (Parameter("fc1.weight", (128, 8)), Parameter("fc2.weight", (4, 128)))
    modules = (Submodule("body", kind or "Linear"),)
    process = sampled(8, loss=lambda i: losses[i > 0], activations=(activation,))
    return recorded(replace(process, models=(Model(2, 0, "Net", 0, parameters, modules),)))


def _players(saturated: float) -> Run:
    """Two networks that use one name for a layer; the loss of the second one does not fall."""
    inner, outer = (Activation("net.0", "sigmoid", (64, 32), saturated=s) for s in (0.0, saturated))
    parameters = (Parameter("net.0.weight", (32, 8)), Parameter("net.2.weight", (1, 32)))
    models = (Model(1, 0, "Generator", parameters=parameters), Model(2, 1, "Judge"))
    losses = (14.0, 0.1, *((0.1, 9.0) * 7))
    process = sampled(
        16, step=lambda i: 50 * (i // 2), optimizer=lambda i: i % 2, loss=lambda i: losses[i],
        activations=(outer, inner),
    )  # fmt: skip
    return recorded(replace(process, models=models))


def _two(first: float, second: float) -> Run:
    layers = tuple(
        Activation(name, "tanh", (64, 128), saturated=share)
        for name, share in (("fc1", first), ("fc2", second))
    )
    model = Model(2, 0, "Net", parameters=(Parameter("fc3.weight", (4, 128)),))
    return recorded(replace(sampled(8, loss=2.3, activations=layers), models=(model,)))


FIRES = {
    "a hidden layer": _run(0.97),
    "one of two players": _players(0.99),
    "two layers": _two(0.75, 0.8),
}

SILENT = {
    "in the middle": _run(0.1),
    "near miss: learns all the same": _run(0.97, losses=(2.3, 0.4)),
    "near miss: the output, sure of itself": _run(0.97, name="fc2"),
    "near miss: two layers, half open each": _two(0.55, 0.5),
    "two players, in the middle": _players(0.3),
    "near miss: gates": _run(0.97, kind="LSTM"),
}
