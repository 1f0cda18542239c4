"""Each batch holds a single class: the data are read in the order of their classes."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.evidence import Finding, Strength, at, cite_record
from traindx.examples import recorded
from traindx.model import Run
from traindx.recording import Epoch, Loader, LossInput, Place, Process, Sample
from traindx.registry import detector
from traindx.runtime.observations import processes_of, spans

CAUSE = "unshuffled-training-data"
ENOUGH = 4  # samples
EXAMPLES = 8  # of a batch: of one class by chance once in thousands of batches
MOST = 0.8  # of the samples
LOSSES = ("cross_entropy", "nll_loss")


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Iterator[Finding]:
    """The loader that is trained on does not shuffle, and its batches hold one class each.

    ## What it detects
    A loader with a sequential sampler over several batches, during whose passes steps were taken,
    and sampled batches of which nearly all have a single class, not always the same one.

    ## Why it matters
    The model learns to answer with the class it sees and forgets the one before: the loss saws up
    and down.

    ## What to do
    `DataLoader(…, shuffle=True)`, or a sampler.

    ## When it is wrong
    Language streams, time series and full batches are read in order for good reasons; without
    batches of one class nothing is said.
    """
    for process in processes_of(run):
        loader = _trained_in_order(process)
        judged = [s for s in process.samples if _labels(s) is not None]
        single = [s for s in judged if len(_labels(s) or ()) == 1]
        classes = {c for s in single for c in _labels(s) or ()}
        if loader is None or len(judged) < ENOUGH or len(single) < MOST * len(judged):
            continue
        if len(classes) < 2:
            continue
        told = f"{len(single)} of {len(judged)} sampled batches hold one class, {spans(judged)}"
        order = f"{loader.dataset or 'the dataset'} is read by a {loader.sampler} in one order"
        yield Finding(
            claim="The training data come class by class: each batch holds a single class",
            strength=Strength.STRONG,
            evidence=(
                cite_record(process, single[0].line, told, step=float(single[0].step)),
                cite_record(process, loader.line, order),
            ),
            shows=CAUSE,
            is_symptom=True,
            onset=float(judged[0].step),
            location=at(loader.place),
        )
        return


def _trained_in_order(process: Process) -> Loader | None:
    """The one loader that steps were taken from, if it reads in order."""
    trained = {e.loader for e in process.epochs if e.trained}
    unknown = not process.epochs and len(process.loaders) == 1
    used = [x for x in process.loaders if x.id in trained or unknown]
    if len(used) != 1 or used[0].is_shuffled or used[0].sampler != "SequentialSampler":
        return None
    return used[0] if (used[0].batches or 0) > 1 else None


def _labels(sample: Sample) -> set[str] | None:
    """The classes of the batch, where one loss over classes was given enough of them."""
    losses = [i for i in sample.losses if i.loss in LOSSES]
    if len(sample.losses) != 1 or not losses or losses[0].classes < 2:
        return None
    return set(losses[0].labels) if sum(losses[0].labels.values()) >= EXAMPLES else None


def _run(*labels: dict[str, int], sampler: str = "SequentialSampler", batches: int = 40) -> Run:
    place = Place("train.py", 9, "", "loader = DataLoader(data, batch_size=32)")
    loader = Loader(
        2, 0, "ImageFolder", 1280, batches, 32, sampler, sampler != "SequentialSampler", place=place
    )
    samples = tuple(
        Sample(i + 3, i * 10, losses=(LossInput("cross_entropy", classes=4, labels=x),))
        for i, x in enumerate(labels)
    )
    epochs = (Epoch(30, 0, batches, 40, trained=40),)
    return recorded(Process(loaders=(loader,), epochs=epochs, samples=samples))


_SORTED = ({"0": 32}, {"0": 32}, {"1": 32}, {"2": 20, "1": 12}, {"2": 32}, {"3": 32})
_MIXED = {"0": 9, "1": 7, "2": 8, "3": 8}

FIRES = {"sorted by class": _run(*_SORTED)}

SILENT = {
    "near miss: in order, and mixed beforehand": _run(*[_MIXED] * 6),
    "near miss: a sampler that groups": _run(*_SORTED, sampler="ClassBalancedSampler"),
    "near miss: one batch is everything": _run(*_SORTED, batches=1),
    "near miss: one class in all": _run(*[{"0": 32}] * 6),
}
