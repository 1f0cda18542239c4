"""The inputs are on a raw scale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from traindx.analysis.recordings.observations import (
    extreme,
    is_integer,
    medians,
    processes_of,
    spans,
)
from traindx.examples import recorded
from traindx.model.findings import Finding, Strength, cite_record
from traindx.model.recording import (
    Activation,
    Model,
    NonFinite,
    Optimizer,
    Parameter,
    Process,
    Sample,
    Submodule,
    Summary,
)
from traindx.model.run import Run
from traindx.registry import detector

CAUSE = "unnormalised-inputs"
RAW = 100.0  # of the mean or the spread of what the first layer is given
ENOUGH = 2  # samples
AT_ONCE = 50  # steps until the first value that is no number
BOUND = 2.0  # rate times curvature, beyond which plain descent diverges
FAR_BEYOND = 10.0  # times the bound
FIRST = ("Linear", "Conv1d", "Conv2d", "Conv3d", "LazyLinear", "LSTM", "GRU", "RNN")
EMBEDDED = ("Embedding", "EmbeddingBag")


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Iterator[Finding]:
    """The first layer is given values in the hundreds or beyond.

    ## What it detects
    A floating-point batch whose mean or spread is 100 or more in every sample, for a model whose
    first layer is linear or a convolution, while the lowest layers in the graph are given values of
    that size.

    ## Why it matters
    Initial weights are made for inputs of about one. Large ones give large first losses, dead or
    saturated units, and a learning rate that fits no layer. The curvature that a first layer meets
    is the mean square of its inputs: where plain descent breaks down within the first steps, at a
    rate that is far beyond the bound with these inputs and within it with inputs of one, the scale
    is the reason, and not the rate.

    ## What to do
    Subtract the mean and divide by the spread of the training data; pixels by 255.

    ## When it is wrong
    Else it is a remark: adaptive optimizers cope with much. Token ids, models that normalise first,
    and values that are scaled between the loader and the model are left alone.
    """
    for process in processes_of(run):
        samples = [s for s in process.samples if s.batch]
        scales = [scale for s in samples if (scale := _raw(s)) is not None]
        if len(scales) < ENOUGH or len(scales) < len(samples) or not _is_direct(process):
            continue
        reached = [a for s in samples for a in _lowest(s)]
        if not reached or medians(_scale(a) for a in reached) < RAW:
            continue
        first, given = samples[0], scales[0]
        says = (
            f"the inputs have mean {given.mean:.4g} and spread {given.std:.4g}, up to "
            f"{extreme(given):.4g}, {spans(samples)}"
        )
        found = Finding(
            claim=f"The inputs are on a raw scale: mean {given.mean:.3g}, spread {given.std:.3g}",
            strength=Strength.MODERATE,
            evidence=(cite_record(process, first.line, says, step=float(first.step)),),
            suggests={CAUSE: Strength.MODERATE},
        )
        yield _breaking(found, run, process, given) or found
        return


def _breaking(found: Finding, run: Run, process: Process, given: Summary) -> Finding | None:
    """Tell of a breakdown that the rate brings about with inputs of this scale only."""
    broken = process.nonfinite[0] if process.nonfinite else None
    rate = run.get("lr")
    known = rate.finite().values if rate is not None else ()
    kinds = {o.type for o in process.optimizers}
    if broken is None or broken.step > AT_ONCE or not len(known) or kinds != {"SGD"}:
        return None
    peak, inputs = float(max(known)), float(prod(given.shape[1:]))
    curvature = peak * inputs * (given.mean**2 + given.std**2)
    if peak * inputs > BOUND or curvature < FAR_BEYOND * BOUND:
        return None
    says = (
        f"rate times mean square of the {inputs:.0f} inputs is {curvature:.3g}, descent diverges "
        f"above {BOUND:.0f}; with inputs of one it is {peak * inputs:.3g}"
    )
    told = cite_record(process, broken.line, says, step=float(broken.step))
    return replace(
        found,
        claim=f"{found.claim}; the run breaks down at step {broken.step}",
        strength=Strength.STRONG,
        evidence=(*found.evidence, told),
        suggests={CAUSE: Strength.STRONG},
        against={"lr-too-high": Strength.MODERATE},
        shows=CAUSE,
        is_symptom=True,
        onset=float(broken.step),
    )


def _raw(sample: Sample) -> Summary | None:
    """Return the first floating-point table of a batch, if it is on a raw scale."""
    if any(is_integer(b) and len(b.shape) > 1 for b in sample.batch):
        return None  # token ids, or images of bytes that are scaled later
    tables = [b for b in sample.batch if "float" in b.dtype and len(b.shape) > 1]
    return tables[0] if tables and _scale(tables[0]) >= RAW else None


def _scale(given: Summary | Activation) -> float:
    return max(abs(given.mean), given.std)


def _lowest(sample: Sample) -> list[Activation]:
    """The inputs of the layer that is furthest from the loss."""
    return [a for a in sample.activations if a.op.startswith("input of")][-1:]


def _is_direct(process: Process) -> bool:
    """Tell whether the first part of every model with parameters takes its inputs as they are."""
    for model in process.models:
        owners = {p.name.rsplit(".", 1)[0] for p in model.parameters}
        kinds = [m.type for m in model.modules if m.name in owners]
        if not kinds or kinds[0] not in FIRST or any(k in EMBEDDED for k in kinds):
            return False
    return bool(process.models)


def _run(
    mean: float, std: float, *, first: str = "Linear", reached: float | None = None, dtype: str = ""
) -> Run:
    scale = max(abs(mean), std) if reached is None else reached
    given = Summary("0", (32, 8), dtype or "float32", "cpu", mean - std, mean + std, mean, std)
    layer = Activation("fc1", "input of addmm", (32, 8), mean=scale, std=1.0)
    parameters = (Parameter("fc1.weight", (16, 8)),)
    model = Model(
        2, 0, "Net", parameters=parameters, modules=(Submodule("", "Net"), Submodule("fc1", first))
    )
    samples = tuple(Sample(i + 3, i, batch=(given,), activations=(layer,)) for i in range(4))
    return recorded(Process(models=(model,), samples=samples))


def _broken(rate: float) -> Run:
    """Plain descent on raw features that breaks down at once."""
    recording = _run(1500.0, 900.0).recording
    made = recording.processes[0] if recording is not None else Process()
    held = (Optimizer(2, type="SGD", groups=({"lr": rate},)),)
    return recorded(
        replace(made, optimizers=held, nonfinite=(NonFinite(9, 4),)), lr=np.full(20, rate)
    )


FIRES = {
    "raw features": _run(1500.0, 900.0),
    "pixels": _run(130.0, 70.0),
    "raw features break descent": _broken(0.01),
}

SILENT = {
    "normalised": _run(0.1, 1.0),
    "near miss: token ids": _run(1500.0, 900.0, dtype="int64"),
    "near miss: batch norm comes first": _run(1500.0, 900.0, first="BatchNorm1d"),
    "near miss: scaled between loader and model": _run(130.0, 70.0, reached=0.5),
}
