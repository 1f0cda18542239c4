"""Batch norm runs on one or two examples at a time, and nothing is learnt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traindx.evidence import Finding, Strength, cite_record
from traindx.examples import recorded, watched, weights
from traindx.model import Run
from traindx.recording import Process, Sample, Summary
from traindx.registry import detector
from traindx.runtime.observations import has_learnt, rows, spans
from traindx.runtime.traces import latest_models, told_once

CAUSE = "batchnorm-small-batch"
FEW = 2  # examples
ENOUGH = 5  # samples
STEPS = 300


@detector(needs=("recording",), suggests=(CAUSE, "lr-too-high"))
def check(run: Run) -> Iterator[Finding]:
    """A model whose batch norm is live gets one or two examples per step and does not learn.

    ## What it detects
    Batches of at most two examples in every sample, batch norm in training mode, and a loss that
    has not fallen after hundreds of steps.

    ## Why it matters
    What batch norm takes away is then the example itself: its mean and scale, which often carry the
    answer. The running statistics that validation uses are noise.

    ## What to do
    A larger batch, or group norm or layer norm, which do not look at the batch.

    ## When it is wrong
    Large images give usable statistics from one example, and such models learn. A learning rate
    that was meant for large batches is too high for single examples, too.
    """
    yield from told_once(run, _look)


def _look(process: Process) -> Iterator[Finding]:
    norms = {
        part.name
        for model in latest_models(process)
        for part in model.modules
        if "BatchNorm" in part.type
    }
    samples = [s for s in process.samples if s.batch]
    steps = process.counts.steps if process.counts is not None else 0
    if len(samples) < ENOUGH or steps < STEPS or has_learnt(process) is not False:
        return
    if not all(norms & set(s.live) and _size(s) <= FEW for s in samples):
        return
    size = max(map(_size, samples))
    says = f"batches of {size}, batch norm in training mode, {spans(samples)}"
    yield Finding(
        claim=f"Batch norm is trained on batches of {size}, and the loss does not fall",
        strength=Strength.STRONG,
        evidence=(cite_record(process, samples[-1].line, says, size=size),),
        suggests={CAUSE: Strength.STRONG, "lr-too-high": Strength.WEAK},
        is_symptom=True,
        onset=float(samples[0].step),
    )


def _size(sample: Sample) -> int:
    return rows(sample.batch[0].shape)


def _run(size: int, *, end: float = 1.6, norm: str = "BatchNorm2d", live: bool = True) -> Run:
    process = watched(*weights("0.weight"), modules={"1": norm}, count=8)
    batch = (Summary("0", (size, 1, 16, 16), "float32"),)
    samples = tuple(
        replace(s, step=50 * i, loss=1.7 if i < 2 else end, batch=batch, live=("1",) * live)
        for i, s in enumerate(process.samples)
    )
    counts = replace(process.counts, steps=400) if process.counts is not None else None
    return recorded(replace(process, samples=samples, counts=counts))


FIRES = {"one example": _run(1), "two": _run(2)}

SILENT = {
    "a batch": _run(32),
    "near miss: it learns": _run(1, end=0.4),
    "near miss: another norm": _run(1, norm="GroupNorm"),
    "near miss: frozen statistics": _run(1, live=False),
}
