"""Evaluation builds graphs that nobody uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traindx.analysis.recordings.traces import told_once
from traindx.examples import recorded, watched, weights
from traindx.model.findings import Finding, Strength, at, cite_record
from traindx.model.recording import Epoch, Evaluation, Process
from traindx.model.run import Run
from traindx.registry import detector

ENOUGH = 3  # forward passes in a row


@detector(needs=("recording",), suggests=("evaluation-with-grad",))
def check(run: Run) -> Iterator[Finding]:
    """Forward passes over a loader that nothing is trained on record gradients.

    ## What it detects
    Three or more forward passes in a row with gradients enabled, in evaluation mode, over a loader
    of their own, after which nobody called backward.

    ## Why it matters
    Every pass keeps its activations: evaluation needs as much memory as training and is slower.

    ## What to do
    Put the loop into `with torch.no_grad():`.

    ## When it is wrong
    Evaluation that asks for gradients by `torch.autograd.grad` (attacks, saliency) needs them;
    this is only a remark.
    """
    yield from told_once(run, _look)


def _look(process: Process) -> Iterator[Finding]:
    for record in process.evaluations:
        is_idle = record.has_grad and not record.is_training and record.forwards >= ENOUGH
        if not is_idle or not _is_held_out(process, record):
            continue
        says = f"{record.forwards} forward passes with gradients enabled, and no backward"
        yield Finding(
            claim="An evaluation records gradients that nobody uses",
            strength=Strength.MODERATE,
            evidence=(
                cite_record(process, record.line, says, step=record.step, forwards=record.forwards),
            ),
            suggests={"evaluation-with-grad": Strength.MODERATE},
            onset=float(record.step),
            location=at(record.place),
        )
        return


def _is_held_out(process: Process, record: Evaluation) -> bool:
    trained_on = {e.loader for e in process.epochs if e.trained > 0}
    known = {e.loader for e in process.epochs}
    return record.loader in known - trained_on


def _process(**given: object) -> Process:
    told = {"step": 50, "forwards": 10, "has_grad": True, "loader": 1, **given}
    return replace(
        watched(*weights("0.weight")),
        epochs=(Epoch(40, 0, 60, trained=60), Epoch(41, 1, 10, step=50)),
        evaluations=(Evaluation(50, **told),),  # type: ignore[arg-type]
    )


FIRES = {"a validation loop": recorded(_process())}

SILENT = {
    "without gradients": recorded(_process(has_grad=False)),
    "near miss: a single pass": recorded(_process(forwards=1)),
    "near miss: passes outside of a loader": recorded(_process(loader=None)),
    "near miss: over the training data": recorded(_process(loader=0)),
}
