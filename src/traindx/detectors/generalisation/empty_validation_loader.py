"""The loader of the held-out data gives no batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traindx.analysis.recordings.observations import processes_of
from traindx.examples import decay, make_run, recorded, watched, weights
from traindx.model.findings import Finding, Strength, at, cite_event, cite_record
from traindx.model.recording import Epoch, Loader, Process
from traindx.model.run import Event, Run
from traindx.registry import detector

CAUSE = "empty-validation"


@detector(needs=("recording|events",), suggests=(CAUSE,))
def check(run: Run) -> Iterator[Finding]:
    """A loader that is not trained on has no batches, while training goes on beside it.

    ## What it detects
    A recorded loader of no examples or no batches that was iterated over, beside one that steps
    were taken from; or Lightning's warning that a loader's length is zero, in a run that trains.

    ## Why it matters
    Nothing is validated. The metric is missing, or an average over nothing: NaN, zero or a crash.
    Choosing the best checkpoint and stopping early have nothing to go by.

    ## What to do
    Look at the split: a slice that begins after the end, a fraction that rounds to zero, or
    `drop_last=True` with a batch size above the number of examples.

    ## When it is wrong
    One rank of several may have no share of a small validation set; loaders of single ranks are not
    judged. A run without validation data by intent can leave the loader out.
    """
    found = next(filter(None, map(_empty, processes_of(run)[:1])), None)
    if found is not None:
        yield found
        return
    told = [e for e in run.events if e.kind == "empty-loader"]
    if told and run.has("loss"):
        yield Finding(
            claim="A loader beside the training data has no batches",
            strength=Strength.STRONG,
            evidence=(cite_event(told[0]),),
            suggests={CAUSE: Strength.STRONG},
            shows=CAUSE,
            is_symptom=True,
        )


def _empty(process: Process) -> Finding | None:
    trained = {e.loader for e in process.epochs if e.trained}
    filled = {e.loader for e in process.epochs if e.batches}
    if process.world_size > 1 or not trained:
        return None
    for loader in process.loaders:
        if loader.id in filled or (loader.size != 0 and loader.batches != 0):
            continue
        size = "an unknown number of" if loader.size is None else loader.size
        says = f"{loader.dataset or 'a dataset'} with {size} examples, in no batches"
        return Finding(
            claim=f"A loader that is not trained on gives no batch: {says}",
            strength=Strength.STRONG,
            evidence=(cite_record(process, loader.line, says, batches=0.0),),
            shows=CAUSE,
            is_symptom=True,
            location=at(loader.place),
        )
    return None


def _run(size: int, batches: int, *, trained: int = 20) -> Run:
    loaders = (Loader(3, 0, "Digits", 640, 20, 32), Loader(4, 1, "Digits", size, batches, 32))
    passes = (Epoch(40, 0, 20, trained=trained), *([Epoch(41, 1, batches)] if batches else []))
    return recorded(replace(watched(*weights("0.weight")), loaders=loaders, epochs=passes))


_WARNING = Event(
    "empty-loader",
    "Total length of `DataLoader` across ranks is zero. Please make sure this was your intention.",
    "train.log",
    "line 9",
)

FIRES = {
    "a slice beyond the end": _run(0, 0),
    "the only batch is dropped": _run(20, 0),
    "Lightning's warning": make_run({"loss/train": decay(20)}, events=(_WARNING,)),
}

SILENT = {
    "a validation set": _run(100, 4),
    "near miss: nothing is trained either": _run(0, 0, trained=0),
    "near miss: the warning of a run that does not train": make_run(events=(_WARNING,)),
}
