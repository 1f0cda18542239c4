"""Hidden units sit at the flat ends of tanh or sigmoid, and nothing is learnt."""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength, cite_record
from traindx.examples import recorded
from traindx.model import Run
from traindx.recording import Activation, Model, Module, Parameter, Process, Sample
from traindx.registry import detector
from traindx.runtime.observations import has_learnt, is_sound, operation, processes_of, rows, spans

CAUSE = "saturated-activations"
MOST = 0.9  # of the values of a layer, and of the samples
ENOUGH = 4  # samples
EXAMPLES = 8
GATED = re.compile(r"LSTM|GRU|Gate|Attention|SqueezeExc|SEBlock|Highway|GLU", re.IGNORECASE)
NAMED = re.compile(r"gate|attn|attention|lstm|gru|rnn|alpha|mask|score", re.IGNORECASE)


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Iterator[Finding]:
    """Most values of a hidden tanh or sigmoid are at its ends, and the loss does not fall.

    ## What it detects
    The output of a hidden tanh or sigmoid of which 90 % or more of the values are within 3 % of the
    ends of the range, in nearly all samples, while late losses are not below the first one.

    ## Why it matters
    At its ends the slope is nearly 0: no gradient passes to the layers below.

    ## What to do
    Normalise the inputs, initialise for the activation (Xavier), normalise in front of it, or use
    ReLU or GELU.

    ## When it is wrong
    Gates are meant to be open or closed, an output that is sure of itself is right, and a network
    that learns all the same is left alone.
    """
    for process in processes_of(run):
        if has_learnt(process) is not False or _is_gated(process):
            continue
        outputs = _last_layers(process)
        samples = [s for s in process.samples if all(map(is_sound, s.losses))]
        for (name, op), seen in _layers(samples).items():
            flat = [pair for pair in seen if pair[1].saturated >= MOST]
            if name in outputs or len(flat) < max(ENOUGH, MOST * len(seen)):
                continue
            last, activation = flat[-1]
            says = (
                f"{activation.saturated:.0%} of the values of {op} behind {name} are at its ends; "
                f"so in {len(flat)} of {len(seen)} samples, {spans([s for s, _ in seen])}"
            )
            yield Finding(
                claim=f"{activation.saturated:.0%} of the {op} units of {name} are saturated",
                strength=Strength.STRONG,
                evidence=(cite_record(process, last.line, says, step=float(last.step)),),
                suggests={CAUSE: Strength.STRONG},
                is_symptom=True,
                onset=float(flat[0][0].step),
            )
            return


def _is_gated(process: Process) -> bool:
    return any(GATED.search(m.type) for model in process.models for m in model.modules)


def _last_layers(process: Process) -> set[str]:
    """The layers that make the output of a model: the last one with parameters."""
    names = (m.parameters[-1].name for m in process.models if m.parameters)
    return {name.rsplit(".", 1)[0] for name in names} | {""}


def _layers(samples: list[Sample]) -> dict[tuple[str, str], list[tuple[Sample, Activation]]]:
    found: dict[tuple[str, str], list[tuple[Sample, Activation]]] = {}
    for sample in samples:
        for activation in sample.activations:
            op = operation(activation.op)
            is_judged = op in ("tanh", "sigmoid") and rows(activation.shape) >= EXAMPLES
            if is_judged and not NAMED.search(activation.name):
                found.setdefault((activation.name, op), []).append((sample, activation))
    return found


def _run(
    saturated: float, *, name: str = "fc1", losses: tuple[float, float] = (2.3, 2.3), kind: str = ""
) -> Run:
    activation = Activation(name, "tanh", (64, 128), saturated=saturated)
    parameters = (Parameter("fc1.weight", (128, 8)), Parameter("fc2.weight", (4, 128)))
    model = Model(2, 0, "Net", parameters=parameters, modules=(Module("body", kind or "Linear"),))
    samples = tuple(
        Sample(i + 3, i * 50, loss=losses[i > 0], activations=(activation,)) for i in range(8)
    )
    return recorded(Process(models=(model,), samples=samples))


FIRES = {"a hidden layer": _run(0.97)}

SILENT = {
    "in the middle": _run(0.1),
    "near miss: learns all the same": _run(0.97, losses=(2.3, 0.4)),
    "near miss: the output, sure of itself": _run(0.97, name="fc2"),
    "near miss: gates": _run(0.97, kind="LSTM"),
}
