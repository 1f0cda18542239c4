from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite, log

from traindx.analysis.recordings.loss_labels import (
    favourite_class,
    is_cheap,
    is_common,
    is_counted,
    least_mistakes,
)
from traindx.analysis.recordings.observations import spans
from traindx.analysis.recordings.traces import per_process
from traindx.examples import recorded, sampled
from traindx.model.recording import LossInput, Process, Sample, Summary
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

CAUSE = "class-collapse"
ENOUGH = 3  # samples
UNSCALED = 0.9  # of the loss of a guess, with which a fresh classifier begins


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
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
    told = [s for s in process.samples if len(s.losses) == 1 and isfinite(s.loss)]
    told = [s for s in told if is_counted(s)]
    is_scaled = process.counts is not None and process.counts.scaled
    if is_scaled or not told or told[0].loss < UNSCALED * log(told[0].losses[0].classes):
        return
    cheap = [s for s in told if is_cheap(s)]
    classes = Counter(favourite_class(s.losses[0]) for s in cheap)
    for favourite, count in classes.most_common(1):
        if count >= ENOUGH and is_common(favourite, told):
            own = [s for s in cheap if favourite_class(s.losses[0]) == favourite]
            yield _finding(process, favourite, own)


def _finding(process: Process, favourite: str, cheap: Sequence[Sample]) -> Finding:
    worst = min(cheap, key=lambda s: s.loss / least_mistakes(s.losses[0]))
    wrong = least_mistakes(worst.losses[0])
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
