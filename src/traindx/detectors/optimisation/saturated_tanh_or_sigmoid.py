from collections.abc import Sequence
from dataclasses import replace

from traindx.analysis.recordings.observations import processes_of, spans
from traindx.analysis.recordings.saturation import (
    MOST,
    SeenLayers,
    has_gates,
    hidden_stacks,
    open_share,
)
from traindx.examples import recorded, sampled
from traindx.model.recording import Activation, Model, Parameter, Process, Submodule
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

CAUSE = "saturated-activations"
ENOUGH = 4  # samples


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
        if has_gates(process):
            continue
        for op, seen in hidden_stacks(process):
            flat = [(s, layers) for s, layers in seen if open_share(layers) <= 1 - MOST]
            if len(flat) >= max(ENOUGH, MOST * len(seen)):
                yield _finding(process, op, flat, len(seen))
                return


def _finding(process: Process, op: str, flat: Sequence[SeenLayers], count: int) -> Finding:
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
