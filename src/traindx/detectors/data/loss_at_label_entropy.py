from dataclasses import replace

import numpy as np

from traindx.analysis.metrics.chance import stays_at_level
from traindx.analysis.recordings.loss_labels import label_entropy
from traindx.analysis.recordings.observations import processes_of, terms_of
from traindx.analysis.recordings.soundness import is_trained_soundly
from traindx.examples import Floats, decay, flat, join, recorded, watched, weights
from traindx.model.recording import Counts, LossInput, Summary
from traindx.registry import (
    Findings,
    Run,
    Strength,
    cite,
    cite_record,
    detector,
    finding,
    suggested,
)

POINTS = 100  # of the loss
STEPS = 150  # fewer, and a healthy run may not have left this level
CLEARED = ("lr-too-high", "lr-too-low", "bad-initialisation", "vanishing-gradients", "dead-relu",
           "unnormalised-inputs", "saturated-activations")  # fmt: skip


@detector(needs=("recording", "loss"), suggests=("misaligned-labels", "label-noise"))
def check(run: Run) -> Findings:
    """The loss stays at the entropy of the labels although inputs, gradients and updates are sound.

    ## What it detects
    A loss over classes that never falls below the entropy of the labels and never blew up, while
    inputs vary on a usual scale, gradients reach every layer at similar size, units are alive and
    updates are of a usual size.

    ## Why it matters
    By elimination, inputs say nothing about the labels they come with. They are out of step, or the
    labels are random.

    ## What to do
    Look at a few examples with their labels where they enter the model; follow both back to where
    they were read, and look for an order that only one of them went through.

    ## When it is wrong
    A task that cannot be learnt from its inputs looks the same, and so does one that takes far
    longer than this run.
    """
    loss = run.objective()
    finite = None if loss is None else loss.finite()
    process = next(iter(processes_of(run)), None)
    if finite is None or process is None or len(finite) < POINTS:
        return
    terms = terms_of(process, "cross_entropy", "nll_loss")
    steps = process.counts.steps if process.counts is not None else 0
    if len(terms) != 1 or steps < STEPS:
        return
    level = label_entropy(terms[0])
    if (
        level is None
        or not stays_at_level(finite.values, level)
        or not is_trained_soundly(process, terms[0])
    ):
        return
    end = float(np.median(finite.values[-len(finite) // 4 :]))
    says = f"{finite.origin.name} ends at {end:.4g}, and the entropy of the labels is {level:.4g}"
    sample = terms[0].samples[0]
    works = "inputs vary, gradients reach every layer, and updates have a usual size"
    yield finding(
        "The loss stays at the entropy of the labels, so the labels do not depend on the inputs",
        suggested("misaligned-labels", moderate="label-noise"),
        cite(finite, says, 0, -1, level=end, entropy=level),
        cite_record(process, sample.line, works, step=sample.step),
        against=dict.fromkeys(CLEARED, Strength.MODERATE),
    )


def _run(
    loss: Floats, *, ratio: float = 2e-3, grads: tuple[float, float] = (0.1, 0.1), std: float = 1.0
) -> Run:
    labels = {"0": 10, "1": 11, "2": 10, "3": 11}
    process = watched(
        *weights("0.weight", "2.weight"), grads=grads, count=8, step=lambda i: 40 * i,
        losses=(LossInput("cross_entropy", classes=4, labels=labels),), update_ratios=(ratio,) * 2,
        batch=(Summary("0", (42, 8), "float32", mean=0.1, std=std), Summary("1", (42,), "int64")),
    )  # fmt: skip
    return recorded(replace(process, counts=Counts(99, steps=320)), loss_train=loss)


_STUCK = flat(320, 1.386, noise=0.01)

FIRES = {"labels of other examples": _run(_STUCK)}

SILENT = {
    "it learns": _run(decay(320, 1.39, 0.3)),
    "near miss: steps that are too small": _run(_STUCK, ratio=1e-6),
    "near miss: steps that are too large": _run(_STUCK, ratio=0.4),
    "near miss: gradients that fade": _run(_STUCK, grads=(1e-7, 0.1)),
    "near miss: inputs that are not scaled": _run(_STUCK, std=80.0),
    "near miss: a blow-up before": _run(join([1.4, 9.0, 30.0, 6.0], _STUCK)),
}
