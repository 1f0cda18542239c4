from collections import Counter
from dataclasses import replace

from traindx.analysis.recordings.loss_labels import batch_labels
from traindx.analysis.recordings.observations import largest_share, processes_of, spans
from traindx.analysis.recordings.trained_loaders import sequential_loader
from traindx.examples import Epoch, Loader, LossInput, Place, recorded, sampled
from traindx.registry import Findings, Run, cite_record, detector, finding

CAUSE = "unshuffled-training-data"
ENOUGH = 4  # samples
MOST = 0.8  # of the samples
PURE = 0.9  # of a batch: the rest is the end of the class before, or the start of the next
FEW = 2  # classes of a batch where two classes meet …
MANY = 5  # … of data that have so many; by chance once in hundreds of batches
COMMON = 0.6  # of all examples: more of one class is an imbalance, which fills batches by itself


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The loader that is trained on does not shuffle, and its batches hold one class each.

    ## What it detects
    A loader with a sequential sampler over several batches, during whose passes steps were taken,
    and sampled batches of which nearly all have a single class, or two of many where one ends and
    the next begins, not always the same ones.

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
        loader = sequential_loader(process)
        judged = [(s, labels) for s in process.samples if (labels := batch_labels(s))]
        total = sum((Counter(labels) for _, labels in judged), Counter[str]())
        is_varied = len(total) >= MANY
        narrow = [s for s, x in judged
                  if largest_share(x)[1] >= PURE or (is_varied and len(x) <= FEW)]  # fmt: skip
        if loader is None or len(judged) < ENOUGH or len(narrow) < MOST * len(judged):
            continue
        if largest_share(total)[1] > COMMON:
            continue
        seen = [s for s, _ in judged]
        counted = (
            f"{len(narrow)} of {len(judged)} sampled batches contain one or two of {len(total)} "
            f"classes, {spans(seen)}"
        )
        order = f"{loader.dataset or 'the dataset'} is read in order by a {loader.sampler}"
        yield finding(
            "The training data are sorted by class: most batches contain a single class",
            CAUSE,
            cite_record(process, narrow[0].line, counted, step=narrow[0].step),
            cite_record(process, loader.line, order),
            onset=seen[0].step,
            place=loader.place,
        )
        return


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

FIRES = {"sorted by class": _run(*_SORTED), "batches in which two classes meet": _run(*_CLASSES)}

SILENT = {
    "near miss: in order, and mixed beforehand": _run(*[_MIXED] * 6),
    "near miss: a sampler that groups": _run(*_SORTED, sampler="ClassBalancedSampler"),
    "near miss: one batch is everything": _run(*_SORTED, batches=1),
    "near miss: a frequent class": _run(*[{"0": 31, "1": 1}] * 5, {"1": 32}),
    "near miss: two classes, mixed": _run(*[{"0": 20, "1": 12}, {"0": 9, "1": 23}] * 3),
    "near miss: one class in all": _run(*[{"0": 32}] * 6),
}
