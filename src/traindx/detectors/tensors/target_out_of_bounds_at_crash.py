import re

from traindx.analysis.recordings.crashes import causes_of_labels, failed_labels, reason_of_labels
from traindx.analysis.recordings.observations import (
    cite_kept_batch,
    own_place,
    place_words,
    processes_of,
    shape_words,
    summary_words,
)
from traindx.examples import recorded
from traindx.model.recording import Caught, Place, Process, Summary
from traindx.registry import Finding, Findings, Run, cite_record, detector, finding

CAUSE = "label-out-of-range"
TARGET = re.compile(
    r"Target (-?\d+) is out of bounds|t >= 0 && t < n_classes|cur_target|device-side assert"
)


@detector(needs=("recording",), suggests=(CAUSE, "output-size-mismatch"))
def check(run: Run) -> Findings:
    """A loss failed on a label, and the recorder saw the labels and the number of classes.

    ## What it detects
    The error of a cross-entropy together with the tensors of its frame: the classes of the logits,
    the smallest and the largest label, and the batch, which is kept.

    ## Why it matters
    Labels that start at 1, an extra class, or −1 for "unknown" are faults of the data that only
    some batches show. The kept batch shows it every time.

    ## What to do
    Map the labels to 0 … C−1 where the data are made, with one map for all splits; use
    `ignore_index` for what must not count.

    ## When it is wrong
    If the labels are right, the output layer has too few units.
    """
    for process in processes_of(run):
        for caught in process.caught:
            found = failed_labels(caught) if TARGET.search(caught.message) else None
            if found is not None:
                yield _finding(process, caught, *found)
                return


def _finding(
    process: Process, caught: Caught, labels: Summary, logits: Summary, classes: int
) -> Finding:
    place = own_place(caught.places)
    label = int(labels.high if labels.high >= classes else labels.low)
    says = f"the labels are {summary_words(labels)}, and the logits {shape_words(logits.shape)}"
    cited = cite_record(process, caught.line, says, step=caught.step, label=label, classes=classes)
    claim = (
        f"Labels range from {labels.low:.0f} to {labels.high:.0f}, but the {classes} classes "
        f"are 0 … {classes - 1}{reason_of_labels(labels, classes)}{place_words(place)}"
    )
    kept = cite_kept_batch(process, caught)
    return finding(claim, causes_of_labels(labels, classes), cited, *kept, shows=CAUSE, place=place)


def _run(low: float, high: float, message: str = "Target 10 is out of bounds.") -> Run:
    where = "cross_entropy, line 3497"
    labels = Summary("target", (32,), "int64", "cpu", low, high, 4.0, 2.0)
    logits = Summary("input", (32, 10), "float32", "cpu", -1.0, 1.0, 0.0, 0.4)
    caught = Caught(
        12, "IndexError", message, 7, places=(Place("train.py", 20),),
        tensors=((where, logits), (where, labels)), kept="incidents/caught-7",
    )  # fmt: skip
    return recorded(Process(caught=(caught,)))


FIRES = {"counted from 1": _run(1, 10), "none": _run(-1, 9), "far beyond": _run(0, 99)}

SILENT = {
    "near miss: the labels fit": _run(0, 9),
    "near miss: an embedding's index": _run(0, 10, "index out of range in self"),
    "no error": recorded(Process()),
}
