"""A layer of rectified units gives zero for every example."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite
from statistics import median

from traindx.evidence import Finding, Strength, cite_record
from traindx.examples import recorded
from traindx.model import Run
from traindx.recording import Activation, LossInput, Process, Sample, Summary
from traindx.registry import detector
from traindx.runtime.observations import late_samples, operation, processes_of, rows, spans

CAUSE = "dead-relu"
MOST = 0.9  # of the units of a layer
ALL = 0.99
ENOUGH = 3  # late samples
EXAMPLES = 16  # of a batch; a unit may be silent for fewer
CONSTANT = 1e-3  # outputs that differ by less do not depend on the input
UNITS = 8  # of a layer
HALF = 0.5  # of the units; as many may be silent in a fresh network


@detector(needs=("recording",), suggests=(CAUSE, "lr-too-high"))
def check(run: Run) -> Iterator[Finding]:
    """Nearly all units behind a ReLU are zero for all examples, in every late sample.

    ## What it detects
    The output of a ReLU in the graph of the loss of which 90 % or more of the units are zero for
    every example of the batch, in each sample of the later part of training. Where all units are
    silent and the output of the model is the same for every example, the input is cut off. If they
    still fired at the first step, steps that are too large have killed them.

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
        late = late_samples(process)
        for name, seen in _layers(late).items():
            dead = median(a.dead for _, a in seen)
            if len(seen) < ENOUGH or min(a.dead for _, a in seen) < MOST:
                continue
            is_cut = min(a.dead for _, a in seen) >= ALL and _is_constant(late)
            found = _finding(process, name, seen, dead, is_cut)
            yield _killed(found, process) if is_cut and _began_alive(process) else found
            return


Seen = list[tuple[Sample, Activation]]


def _layers(samples: tuple[Sample, ...]) -> dict[str, Seen]:
    """Return the rectified outputs by layer and size; a layer may be used several times."""
    found: dict[tuple[int, str, int], Seen] = {}
    for sample in samples:
        for place, activation in enumerate(sample.activations):
            is_relu = operation(activation.op) in ("relu", "threshold")
            is_wide = len(activation.shape) > 1 and max(activation.shape[1:]) >= UNITS
            if is_relu and activation.dead == activation.dead and is_wide:
                key = (sample.optimizer, activation.name, place)
                found.setdefault(key, []).append((sample, activation))
    return {
        name: seen
        for (_, name, _), seen in found.items()
        if all(rows(a.shape) >= EXAMPLES for _, a in seen)
    }


def _began_alive(process: Process) -> bool:
    """Tell whether most units fired at the very first step: then the training killed them."""
    first = process.samples[0]
    shares = [a.dead for a in first.activations if operation(a.op) in ("relu", "threshold")]
    known = [dead for dead in shares if isfinite(dead)]
    return first.step <= 1 and bool(known) and max(known) < HALF


def _killed(found: Finding, process: Process) -> Finding:
    """Units that fired and fell silent were pushed over the edge by steps that were too large."""
    first = process.samples[0]
    says = "most units of every layer still fire at the first step"
    return replace(
        found,
        evidence=(*found.evidence, cite_record(process, first.line, says, step=float(first.step))),
        suggests={"lr-too-high": Strength.STRONG, CAUSE: Strength.MODERATE},
        shows=None,
    )


def _is_constant(late: tuple[Sample, ...]) -> bool:
    spreads = [i.spread for s in late for i in s.losses]
    return bool(spreads) and all(spread < CONSTANT for spread in spreads)


def _finding(process: Process, name: str, seen: Seen, dead: float, is_cut: bool) -> Finding:
    last, activation = seen[-1]
    where = f" behind {name}" if name else ""
    says = (
        f"{dead:.0%} of the units of the {operation(activation.op)}{where} are 0 for every "
        f"example, in all {len(seen)} samples, {spans([s for s, _ in seen])}"
    )
    beside = ", and the output is the same for every input" if is_cut else ""
    return Finding(
        claim=f"{dead:.0%} of the units{where} never fire{beside}",
        strength=Strength.STRONG if is_cut else Strength.MODERATE,
        evidence=(cite_record(process, last.line, says, step=float(last.step), dead=dead),),
        suggests={} if is_cut else {CAUSE: Strength.MODERATE},
        shows=CAUSE if is_cut else None,
        is_symptom=is_cut,
        onset=float(seen[0][0].step),
    )


def _run(dead: float, *, spread: float = 0.5, examples: int = 64, count: int = 8) -> Run:
    activation = Activation("fc1", "relu", (examples, 128), dead=dead)
    given = LossInput("mse_loss", "addmm", Summary(shape=(examples, 1)), spread=spread)
    samples = tuple(
        Sample(i + 1, i * 50, activations=(activation,), losses=(given,)) for i in range(count)
    )
    return recorded(Process(samples=samples))


FIRES = {"all dead": _run(1.0, spread=0.0), "most of a layer": _run(0.95)}

SILENT = {
    "near miss: half of the units": _run(0.5),
    "near miss: a small batch": _run(0.95, examples=4),
    "near miss: one sample": _run(1.0, count=1),
    "all alive": _run(0.0),
}
