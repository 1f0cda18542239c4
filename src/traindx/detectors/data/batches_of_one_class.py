from collections import Counter
from dataclasses import replace

from traindx.analysis.recordings.loss_labels import batch_labels, come_again
from traindx.analysis.recordings.observations import largest_share, processes_of, spans
from traindx.analysis.recordings.trained_loaders import sequential_loader
from traindx.examples import Epoch, Loader, LossInput, Place, recorded, sampled
from traindx.model.findings import Evidence
from traindx.model.recording import Process
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "unshuffled-training-data"
ENOUGH = 4  # samples
WITHOUT_LOADER = 8  # samples: how batches are made is not seen, so their labels must say it alone
MOST = 0.8  # of the samples
PURE = 0.9  # of a batch: the rest is the end of the class before, or the start of the next
FEW = 2  # classes of a batch where two classes meet …
MANY = 5  # … of data that have so many; by chance once in hundreds of batches
COMMON = 0.6  # of all examples: more of one class is an imbalance, which fills batches by itself


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The data that are trained on are sorted: batches hold one class each.

    ## What it detects
    A loader with a sequential sampler over several batches, during whose passes steps were taken,
    or slices that the program takes itself; and sampled batches of which nearly all have a single
    class, or two of many where one ends and the next begins, not always the same ones. Without a
    loader the classes must come again, as they do pass after pass.

    ## Why it matters
    The model learns to answer with the class it sees and forgets the one before: the loss saws up
    and down.

    ## What to do
    `DataLoader(…, shuffle=True)`, or a sampler; of slices, index with a permutation that is drawn
    anew for every epoch.

    ## When it is wrong
    Language streams, time series and full batches are read in order for good reasons; without
    batches of one class nothing is said. A loop without a loader that trains one task, or one
    client, at a time does so on purpose.
    """
    for process in processes_of(run):
        loader = sequential_loader(process)
        judged = [(s, labels) for s in process.samples if (labels := batch_labels(s))]
        total = sum((Counter(labels) for _, labels in judged), Counter[str]())
        is_varied = len(total) >= MANY
        narrow = [s for s, x in judged
                  if largest_share(x)[1] >= PURE or (is_varied and len(x) <= FEW)]  # fmt: skip
        enough = ENOUGH if loader is not None else WITHOUT_LOADER
        if len(judged) < enough or len(narrow) < MOST * len(judged):
            continue
        if largest_share(total)[1] > COMMON:
            continue
        if loader is None and (process.loaders or not is_varied or not come_again(judged)):
            continue
        seen = [s for s, _ in judged]
        counted = (
            f"{len(narrow)} of {len(judged)} sampled batches contain one or two of {len(total)} "
            f"classes, {spans(seen)}"
        )
        yield finding(
            "The training data are sorted by class: most batches contain a single class",
            CAUSE,
            cite_record(process, narrow[0].line, counted, step=narrow[0].step),
            *_order(process, loader),
            onset=seen[0].step,
            place=loader.place if loader is not None else narrow[0].place,
        )
        return


def _order(process: Process, loader: Loader | None) -> tuple[Evidence, ...]:
    if loader is None:
        return ()
    order = f"{loader.dataset or 'the dataset'} is read in order by a {loader.sampler}"
    return (cite_record(process, loader.line, order),)


def _run(*labels: dict[str, int], sampler: str = "SequentialSampler", batches: int = 40) -> Run:
    place = Place("train.py", 9, "", "loader = DataLoader(data, batch_size=32)")
    loader = Loader(
        2, 0, "ImageFolder", 1280, batches, 32, sampler, sampler != "SequentialSampler", place=place
    )
    losses = [(LossInput("cross_entropy", classes=4, labels=x),) for x in labels]
    process = sampled(len(labels), losses=lambda i: losses[i])
    epochs = (Epoch(30, 0, batches, 40, trained=40),)
    return recorded(replace(process, loaders=(loader,), epochs=epochs))


_SORTED = ({"0": 32}, {"0": 32}, {"1": 32}, {"2": 20, "1": 12}, {"2": 32}, {"3": 32})
_MIXED = {"0": 9, "1": 7, "2": 8, "3": 8}

_CLASSES = [{str(i): 32} if i % 2 else {str(i): 20, str(i + 1): 12} for i in range(8)]


def _sliced(*labels: dict[str, int]) -> Run:
    losses = [(LossInput("cross_entropy", classes=8, labels=x),) for x in labels]
    return recorded(sampled(len(labels), losses=lambda i: losses[i]))


FIRES = {
    "sorted by class": _run(*_SORTED),
    "batches in which two classes meet": _run(*_CLASSES),
    "slices of sorted arrays, pass after pass": _sliced(*_CLASSES, *_CLASSES[:4]),
}

SILENT = {
    "near miss: in order, and mixed beforehand": _run(*[_MIXED] * 6),
    "near miss: a sampler that groups": _run(*_SORTED, sampler="ClassBalancedSampler"),
    "near miss: one batch is everything": _run(*_SORTED, batches=1),
    "near miss: a frequent class": _run(*[{"0": 31, "1": 1}] * 5, {"1": 32}),
    "near miss: two classes, mixed": _run(*[{"0": 20, "1": 12}, {"0": 9, "1": 23}] * 3),
    "near miss: one class in all": _run(*[{"0": 32}] * 6),
    "near miss: one task after the other, without a loader": _sliced(*_CLASSES, {"9": 32}),
    "near miss: slices of mixed arrays": _sliced(*[_MIXED] * 9),
}
