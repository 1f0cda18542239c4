from dataclasses import replace

from traindx.analysis.recordings.observations import has_learnt, rows, spans
from traindx.analysis.recordings.traces import latest_models, told_once
from traindx.examples import recorded, watched, weights
from traindx.model.recording import Counts, Process, Summary
from traindx.registry import Findings, Run, cite_record, detector, finding, suggested

CAUSE = "batchnorm-small-batch"
FEW = 2  # examples
ENOUGH = 5  # samples
STEPS = 300


@detector(needs=("recording",), suggests=(CAUSE, "lr-too-high"))
def check(run: Run) -> Findings:
    """A model whose batch norm is live gets one or two examples per step and does not learn.

    ## What it detects
    Batches of at most two examples in every sample, batch norm in training mode, and a loss that
    has not fallen after hundreds of steps. In a GAN the loss says nothing; there it counts if batch
    norm gets one row per example.

    ## Why it matters
    Batch norm then removes the mean and scale of the example itself, which often carry the answer.
    With two rows every value becomes 1 or -1. The running statistics that validation uses are
    noise.

    ## What to do
    A larger batch, or group norm or layer norm, which do not look at the batch.

    ## When it is wrong
    Large images give usable statistics from one example, and such models learn. A learning rate
    that was meant for large batches is too high for single examples, too.
    """
    is_contest = run.objective() is None and run.has("loss")
    yield from told_once(run, lambda process: _look(process, is_contest=is_contest))


def _look(process: Process, *, is_contest: bool) -> Findings:
    parts = [part for model in latest_models(process) for part in model.modules]
    norms = {part.name for part in parts if "BatchNorm" in part.type}
    samples = [s for s in process.samples if s.batch and norms & set(s.live)]
    is_flat = not any("Conv" in p.type or p.type in ("BatchNorm2d", "BatchNorm3d") for p in parts)
    steps = process.counts.steps if process.counts is not None else 0
    if len(samples) < ENOUGH or steps < STEPS:
        return
    if not (is_contest and is_flat) and has_learnt(process) is not False:
        return
    size = max(rows(s.batch[0].shape) for s in samples)
    if size > FEW:
        return
    says = f"batch size {size} with batch norm in training mode, {spans(samples)}"
    then = (
        "which leaves only the sign of each value" if is_contest else "and the loss does not fall"
    )
    claim = f"Batch norm is trained with a batch size of {size}, {then}"
    cited = cite_record(process, samples[-1].line, says, size=size)
    yield finding(claim, suggested(CAUSE, weak="lr-too-high"), cited, onset=samples[0].step)


def _run(
    size: int, *, end: float = 1.6, norm: str = "BatchNorm2d", live: bool = True,
    rival: bool = False,
) -> Run:  # fmt: skip
    process = watched(
        *weights("0.weight"), modules={"1": norm}, count=8, step=lambda i: 50 * i,
        loss=lambda i: 1.7 if i < 2 else end, live=("1",) * live,
        batch=(Summary("0", (size, 1, 16, 16), "float32"),),
    )  # fmt: skip
    run = recorded(replace(process, counts=Counts(99, steps=400)), loss_train=[1.0, 0.9])
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
