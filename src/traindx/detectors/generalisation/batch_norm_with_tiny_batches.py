"""Batch norm runs on one or two examples at a time, and nothing is learnt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traindx.analysis.recordings.observations import has_learnt, rows, spans
from traindx.analysis.recordings.traces import latest_models, told_once
from traindx.examples import recorded, watched, weights
from traindx.model.findings import Finding, Strength, cite_record
from traindx.model.recording import Process, Sample, Summary
from traindx.model.run import Run
from traindx.registry import detector

CAUSE = "batchnorm-small-batch"
FEW = 2  # examples
ENOUGH = 5  # samples
STEPS = 300


@detector(needs=("recording",), suggests=(CAUSE, "lr-too-high"))
def check(run: Run) -> Iterator[Finding]:
    """A model whose batch norm is live gets one or two examples per step and does not learn.

    ## What it detects
    Batches of at most two examples in every sample, batch norm in training mode, and a loss that
    has not fallen after hundreds of steps. Of networks that play against each other the loss says
    nothing; there it counts if batch norm gets one row per example.

    ## Why it matters
    What batch norm takes away is then the example itself: its mean and scale, which often carry the
    answer. Of two rows it keeps which one is larger, and no more: every value becomes 1 or -1. The
    running statistics that validation uses are noise.

    ## What to do
    A larger batch, or group norm or layer norm, which do not look at the batch.

    ## When it is wrong
    Large images give usable statistics from one example, and such models learn. A learning rate
    that was meant for large batches is too high for single examples, too.
    """
    is_contest = run.objective() is None and run.has("loss")
    yield from told_once(run, lambda process: _look(process, is_contest=is_contest))


def _look(process: Process, *, is_contest: bool) -> Iterator[Finding]:
    parts = [part for model in latest_models(process) for part in model.modules]
    norms = {part.name for part in parts if "BatchNorm" in part.type}
    samples = [s for s in process.samples if s.batch and norms & set(s.live)]
    is_flat = not any("Conv" in p.type or p.type in ("BatchNorm2d", "BatchNorm3d") for p in parts)
    steps = process.counts.steps if process.counts is not None else 0
    if len(samples) < ENOUGH or steps < STEPS:
        return
    if not (is_contest and is_flat) and has_learnt(process) is not False:
        return
    if any(_size(s) > FEW for s in samples):
        return
    size = max(map(_size, samples))
    says = f"batches of {size}, batch norm in training mode, {spans(samples)}"
    then = "which leaves a sign of every value" if is_contest else "and the loss does not fall"
    yield Finding(
        claim=f"Batch norm is trained on batches of {size}, {then}",
        strength=Strength.STRONG,
        evidence=(cite_record(process, samples[-1].line, says, size=size),),
        suggests={CAUSE: Strength.STRONG, "lr-too-high": Strength.WEAK},
        is_symptom=True,
        onset=float(samples[0].step),
    )


def _size(sample: Sample) -> int:
    return rows(sample.batch[0].shape)


def _run(
    size: int,
    *,
    end: float = 1.6,
    norm: str = "BatchNorm2d",
    live: bool = True,
    rival: bool = False,
) -> Run:
    process = watched(*weights("0.weight"), modules={"1": norm}, count=8)
    batch = (Summary("0", (size, 1, 16, 16), "float32"),)
    samples = tuple(
        replace(s, step=50 * i, loss=1.7 if i < 2 else end, batch=batch, live=("1",) * live)
        for i, s in enumerate(process.samples)
    )
    counts = replace(process.counts, steps=400) if process.counts is not None else None
    run = recorded(replace(process, samples=samples, counts=counts), loss_train=[1.0, 0.9])
    loss = next(iter(run.series.values()))
    return replace(run, series={"loss/train/generator": loss}) if rival else run


FIRES = {
    "one example": _run(1),
    "two": _run(2),
    "two rows in a contest": _run(2, end=0.4, norm="BatchNorm1d", rival=True),
}

SILENT = {
    "a batch": _run(32),
    "near miss: it learns": _run(1, end=0.4),
    "near miss: two images in a contest": _run(2, end=0.4, rival=True),
    "near miss: another norm": _run(1, norm="GroupNorm"),
    "near miss: frozen statistics": _run(1, live=False),
}
