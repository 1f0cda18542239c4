"""The loss is lower than its mistakes allow: one class is made to count for all others."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite, log
from statistics import median

from traindx.analysis.recordings.observations import largest_share, rows, spans
from traindx.analysis.recordings.traces import told_once
from traindx.examples import recorded, sampled
from traindx.model.findings import Finding, Strength, cite_record, finding
from traindx.model.recording import LossInput, Process, Sample, Summary
from traindx.registry import Findings, Run, detector

CAUSE = "class-collapse"
LOSSES = ("cross_entropy", "nll_loss")
LISTED = 20  # classes that a record counts one by one
EXAMPLES = 16  # of a batch
MISTAKEN = 0.25  # of the examples of a batch
CHEAP = 0.6  # of what these mistakes cost at least, if every example counts alike
FAVOURED = 0.2  # of the examples: by how much more often one class is predicted than it is there
ENOUGH = 3  # samples
UNSCALED = 0.9  # of the loss of a guess, with which a fresh classifier begins
COMMON = 0.5  # of the median class: a class that is rarer is weighted for a reason


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Batch after batch one class is predicted for others, at a price that is too low.

    ## What it detects
    A wrong answer costs a cross-entropy of ln 2 at least. Batches that hold more mistakes than
    their loss pays for, in a run that began at the loss of a guess, are not averaged over their
    examples: some of them weigh far more. They do so for a class that is predicted far too often,
    and that is not rare.

    ## Why it matters
    Whatever is not that class hardly counts. The model answers with it when in doubt, and learns
    the others late or not at all, while the loss looks excellent.

    ## What to do
    Look at the `weight` of the loss, at `pos_weight` and at factors by example. Weights undo an
    imbalance: with balanced classes they should be one.

    ## When it is wrong
    A class that is dear by design (a missed illness) is favoured on purpose, though rarely to this
    extent. A loss that is divided for accumulation begins below that of a guess and is left alone,
    and so are a class that is rare, and tokens and pixels, of which some are padding.
    """
    yield from told_once(run, _look)


def _look(process: Process) -> Findings:
    told = [s for s in process.samples if len(s.losses) == 1 and isfinite(s.loss)]
    told = [s for s in told if _is_counted(s)]
    is_scaled = process.counts is not None and process.counts.scaled
    if is_scaled or not told or told[0].loss < UNSCALED * log(told[0].losses[0].classes):
        return
    cheap = [s for s in told if _is_cheap(s)]
    classes = Counter(_favourite(s.losses[0]) for s in cheap)
    for favourite, count in classes.most_common(1):
        if count >= ENOUGH and _is_common(favourite, told):
            own = [s for s in cheap if _favourite(s.losses[0]) == favourite]
            yield _finding(process, favourite, own)


def _is_counted(sample: Sample) -> bool:
    """Tell whether every example of the batch has a label and a prediction that are known.

    Of tokens and pixels some are padding, and answers there cost nothing by design.
    """
    given = sample.losses[0]
    sizes = {sum(given.labels.values()), sum(given.predictions.values())}
    sizes |= {rows(b.shape) for b in sample.batch if b.shape}
    is_whole = bool(sample.batch) and len(sizes) == 1 and min(sizes) >= EXAMPLES
    is_few = 2 <= given.classes <= LISTED
    return given.loss in LOSSES and is_few and is_whole and not given.ignored > 0.0


def _mistakes(given: LossInput) -> float:
    """The least share of wrong answers that leads from these labels to these predictions."""
    size = sum(given.labels.values())
    right = sum(min(n, given.predictions.get(c, 0)) for c, n in given.labels.items())
    return 1.0 - right / size


def _is_cheap(sample: Sample) -> bool:
    given = sample.losses[0]
    wrong, favourite = _mistakes(given), _favourite(given)
    size = sum(given.labels.values())
    over = (given.predictions[favourite] - given.labels.get(favourite, 0)) / size
    return wrong >= MISTAKEN and over >= FAVOURED and 0.0 <= sample.loss < CHEAP * wrong * log(2)


def _favourite(given: LossInput) -> str:
    return largest_share(given.predictions)[0]


def _is_common(favourite: str, told: Sequence[Sample]) -> bool:
    counts: Counter[str] = Counter()
    for sample in told:
        counts.update(sample.losses[0].labels)
    return counts[favourite] >= COMMON * median(counts.values())


def _finding(process: Process, favourite: str, cheap: Sequence[Sample]) -> Finding:
    worst = min(cheap, key=lambda s: s.loss / _mistakes(s.losses[0]))
    wrong = _mistakes(worst.losses[0])
    says = (
        f"at step {worst.step} at least {wrong:.0%} of the predictions are wrong, which costs at "
        f"least {wrong * log(2):.3g} unweighted, but the loss is {worst.loss:.3g}; the same in "
        f"{len(cheap)} samples, {spans(cheap)}"
    )
    return finding(
        f"Class {favourite} has too much weight in the loss: predicting it wrongly costs almost "
        "nothing",
        {CAUSE: Strength.STRONG},
        cite_record(process, worst.line, says, step=float(worst.step), loss=worst.loss),
        onset=cheap[0].step,
        place=worst.place,
    )


_EVEN = {"0": 8, "1": 8, "2": 8, "3": 8}


def _run(
    loss: float, predicted: Mapping[str, int], *, first: float = 1.4,
    labels: Mapping[str, int] = _EVEN, size: int = 32,
) -> Run:  # fmt: skip
    given = LossInput("cross_entropy", "addmm", classes=4, labels=labels, predictions=predicted)
    batch = (Summary("0", (size, 8), "float32"),)
    losses = {"loss": lambda i: loss if i else first, "losses": (given,)}
    return recorded(sampled(9, batch=batch, **losses))


_ONE = {"0": 32}

FIRES = {"one class for all, and a low loss": _run(0.05, _ONE)}

SILENT = {
    "near miss: one class for all, at its price": _run(1.4, _ONE),
    "near miss: a loss divided for accumulation": _run(0.17, _ONE, first=0.17),
    "near miss: a rare class that is weighted": _run(
        0.05, _ONE, labels={"0": 1, "1": 10, "2": 10, "3": 11}
    ),
    "near miss: tokens, of which some are padding": _run(0.05, _ONE, size=4),
    "right": _run(0.05, _EVEN),
}
