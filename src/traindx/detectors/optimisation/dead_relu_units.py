from statistics import median
from typing import Any

from traindx.analysis.recordings.dead_units import (
    ENOUGH,
    SeenLayer,
    began_alive,
    effect_of_dead_layer,
    relu_layers,
    samples_of_large_batches,
)
from traindx.analysis.recordings.observations import operation, processes_of, spans
from traindx.examples import recorded, sampled, watched, weights
from traindx.model.recording import Activation, LossInput, Process, Summary
from traindx.registry import (
    Finding,
    Findings,
    Run,
    Strength,
    cite_record,
    detector,
    finding,
    suggested,
)

CAUSE = "dead-relu"
MOST = 0.9  # of the units of a layer
ALL = 0.99


@detector(needs=("recording",), suggests=(CAUSE, "lr-too-high"))
def check(run: Run) -> Findings:
    """Nearly all units behind a ReLU are zero for all examples, in every late sample.

    ## What it detects
    The output of a ReLU in the graph of the loss of which 90 % or more of the units are zero for
    every example of the batch, in each sample of the later part of training, or of the whole where
    few are late. Where all units are silent and the output of the model is the same for every
    example, or the lowest weights of the model or most of them get a gradient of exactly zero, the
    input is cut off. If they still fired at the first step, steps that are too large have killed
    them.

    ## Why it matters
    A unit that never fires has no gradient and never comes back.

    ## What to do
    A lower learning rate and a sound initialisation; normalisation in front of the ReLU; LeakyReLU
    or GELU.

    ## When it is wrong
    Half of the units may be silent in a good network, and a part that a residual connection
    passes by may be given up; a layer with a few live units is only remarked. Batches of fewer
    than 16 examples, and the beginning of training, do not count.
    """
    for process in processes_of(run):
        late = samples_of_large_batches(process)
        layers = {n: seen for n, seen in relu_layers(late).items() if len(seen) >= ENOUGH}
        quiet = [n for n, seen in layers.items() if min(a.dead for _, a in seen) >= MOST]
        if not quiet:
            continue
        silent = [n for n in quiet if min(a.dead for _, a in layers[n]) >= ALL]
        effect = effect_of_dead_layer(process, late) if silent else ""
        name = silent[0] if effect else quiet[0]
        yield _finding(process, name, layers[name], effect)
        return


def _finding(process: Process, name: str, seen: SeenLayer, effect: str) -> Finding:
    is_cut, dead = bool(effect), median(a.dead for _, a in seen)
    (last, activation), first = seen[-1], process.samples[0]
    where = f" behind {name}" if name else ""
    says = (
        f"{dead:.0%} of the units of the {operation(activation.op)}{where} are 0 for every "
        f"example, in all {len(seen)} samples, {spans([s for s, _ in seen])}"
    )
    evidence = [cite_record(process, last.line, says, step=float(last.step), dead=dead)]
    cause = CAUSE if is_cut else suggested(moderate=CAUSE)
    if is_cut and began_alive(process):  # steps that were too large pushed them over the edge
        says = "most units of every layer are still active at the first step"
        evidence.append(cite_record(process, first.line, says, step=float(first.step)))
        cause = suggested("lr-too-high", CAUSE)
    return finding(
        f"{dead:.0%} of the ReLU units{where} are dead{effect}",
        cause,
        *evidence,
        strength=Strength.STRONG if is_cut else Strength.MODERATE,
        is_symptom=is_cut,
        onset=seen[0][0].step,
    )


def _starved(grad: float) -> Run:
    """A silent layer beside which something else reaches the output, such as drawn noise."""
    names, fields = weights("fc1.weight", "fc2.weight"), _fields(1.0)
    return recorded(watched(*names, grads=(grad, 0.1), count=8, step=lambda i: 50 * i, **fields))


def _fields(dead: float, spread: float = 0.5, examples: int = 64) -> dict[str, Any]:
    given = LossInput("mse_loss", "addmm", Summary(shape=(examples, 1)), spread=spread)
    activation = Activation("fc1", "relu", (examples, 128), dead=dead)
    return {"activations": (activation,), "losses": (given,)}


def _run(
    dead: float, *, spread: float = 0.5, examples: int = 64, count: int = 8, last: int = 0
) -> Run:
    fields = _fields(dead, spread, examples)
    more = count + bool(last)
    return recorded(sampled(more, step=lambda i: last if i == count else 50 * i, **fields))


FIRES = {
    "all dead": _run(1.0, spread=0.0),
    "most of a layer": _run(0.95),
    "starved": _starved(0.0),
    "all dead, seen late only once": _run(1.0, spread=0.0, count=5, last=900),
}

SILENT = {
    "near miss: half of the units": _run(0.5),
    "near miss: a small batch": _run(0.95, examples=4),
    "near miss: one sample": _run(1.0, count=1),
    "all alive": _run(0.0),
}
