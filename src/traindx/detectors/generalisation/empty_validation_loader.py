from dataclasses import replace

from traindx.analysis.recordings.observations import processes_of
from traindx.examples import Event, decay, logged, make_run, recorded, watched, weights
from traindx.model.findings import cite_event
from traindx.model.recording import Epoch, Loader, Process
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

CAUSE = "empty-validation"


@detector(needs=("recording|events",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
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
    warnings = [e for e in run.events if e.kind == "empty-loader"]
    if warnings and run.has("loss"):
        claim = "A DataLoader besides the training loader is empty"
        yield finding(claim, {CAUSE: Strength.STRONG}, cite_event(warnings[0]), shows=CAUSE)


def _empty(process: Process) -> Finding | None:
    trained = {e.loader for e in process.epochs if e.trained}
    filled = {e.loader for e in process.epochs if e.batches}
    if process.world_size > 1 or not trained:
        return None
    for loader in process.loaders:
        if loader.id in filled or (loader.size != 0 and loader.batches != 0):
            continue
        size = "an unknown number of" if loader.size is None else loader.size
        says = f"{loader.dataset or 'the dataset'} has {size} examples, and the loader 0 batches"
        cited = cite_record(process, loader.line, says, batches=0.0)
        return finding(f"The validation loader is empty: {says}", CAUSE, cited, place=loader.place)
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
    "Lightning's warning": logged(loss_train=decay(20), events=(_WARNING,)),
}

SILENT = {
    "a validation set": _run(100, 4),
    "near miss: nothing is trained either": _run(0, 0, trained=0),
    "near miss: the warning of a run that does not train": make_run(events=(_WARNING,)),
}
