from dataclasses import replace
from math import prod

import numpy as np

from traindx.analysis.recordings.input_batches import (
    BOUND,
    breaking_rate,
    mean_square,
    raw_inputs,
)
from traindx.analysis.recordings.observations import extreme, processes_of, spans
from traindx.examples import recorded, watched
from traindx.model.recording import Activation, NonFinite, Parameter, Process, Summary
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

CAUSE = "unnormalised-inputs"


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The inputs of the first layer are in the hundreds or beyond.

    ## What it detects
    A floating-point batch whose mean or spread is 100 or more in every sample, for a model whose
    first layer is linear or a convolution, while the inputs of the lowest layers in the graph are
    of that size.

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
        raw = raw_inputs(process)
        if raw is None:
            continue
        samples, given = raw
        says = (
            f"the inputs have mean {given.mean:.4g} and std {given.std:.4g}, up to "
            f"{extreme(given):.4g}, {spans(samples)}"
        )
        found = finding(
            f"The inputs are not normalized: mean {given.mean:.3g}, std {given.std:.3g}",
            {CAUSE: Strength.MODERATE},
            cite_record(process, samples[0].line, says, step=samples[0].step),
            strength=Strength.MODERATE,
            is_symptom=False,
        )
        broken = breaking_rate(run, process, given)
        yield found if broken is None else _breaking(found, process, given, *broken)
        return


def _breaking(
    found: Finding, process: Process, given: Summary, broken: NonFinite, pace: float
) -> Finding:
    """Return the finding of a breakdown that the rate causes with inputs of this scale only."""
    says = (
        f"learning rate × mean square of the {prod(given.shape[1:])} inputs is "
        f"{pace * mean_square(given):.3g}, and SGD diverges above {BOUND:.0f}; with normalized "
        f"inputs it would be {pace:.3g}"
    )
    return replace(
        found,
        claim=f"{found.claim}; values become NaN or Inf at step {broken.step}",
        strength=Strength.STRONG,
        evidence=(*found.evidence, cite_record(process, broken.line, says, step=broken.step)),
        suggests={CAUSE: Strength.STRONG},
        against={"lr-too-high": Strength.MODERATE},
        shows=CAUSE,
        is_symptom=True,
        onset=float(broken.step),
    )


def _run(
    mean: float, std: float, *, first: str = "Linear", reached: float | None = None, dtype: str = ""
) -> Run:
    scale = max(abs(mean), std) if reached is None else reached
    given = Summary("0", (32, 8), dtype or "float32", "cpu", mean - std, mean + std, mean, std)
    layer = Activation("fc1", "input of addmm", (32, 8), mean=scale, std=1.0)
    return recorded(
        watched(
            Parameter("fc1.weight", (16, 8), optimizer=0), modules={"": "Net", "fc1": first},
            count=4, batch=(given,), activations=(layer,),
        )
    )  # fmt: skip


def _broken(rate: float) -> Run:
    """Plain descent on raw features that breaks down at once."""
    recording = _run(1500.0, 900.0).recording
    made = recording.processes[0] if recording is not None else Process()
    return recorded(replace(made, nonfinite=(NonFinite(9, 4),)), lr=np.full(20, rate))


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
