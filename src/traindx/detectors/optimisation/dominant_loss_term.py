from collections.abc import Callable
from dataclasses import replace
from math import log

from traindx.analysis.recordings.predictions import SQUARED, dominated
from traindx.analysis.recordings.traces import per_process
from traindx.examples import recorded, sampled
from traindx.model.recording import Counts, LossInput, Process, Summary
from traindx.registry import Findings, Run, Strength, cite_record, detector, finding

CAUSE = "competing-losses"


@detector(needs=("recording",), suggests=(CAUSE,))
@per_process
def check(process: Process) -> Findings:
    """Most of the loss comes from another term, and the outputs end up saying nothing.

    ## What it detects
    A total loss that begins at several times what its cross-entropy can be at all (no more than its
    least log-probability), falls, and leaves every class equally likely for every example. Or one
    that begins at several times what its squared error can be (no more than the squared sum of the
    sizes of predictions and targets), and leaves one prediction for all.

    ## Why it matters
    The optimizer minimises the sum. A penalty or a second task that outweighs the labels by far is
    solved first, here at the price of outputs that say nothing.

    ## What to do
    Log every term by itself. Lower the weight of the large one, or take its mean instead of its
    sum, until both fall.

    ## When it is wrong
    A loss summed over the batch ends at the sum for uniform outputs and is compared with it; so is
    a squared error that is summed or weighted. A run that is stopped early may have outputs that
    are still near uniform, so the loss must have fallen.
    """
    found = dominated(process)
    if found is None:
        return
    first, last, most = found
    given = last.losses[0]
    is_squared = given.loss == SQUARED
    term = "the squared error" if is_squared else "cross-entropy"
    says = f"the total loss is {first.loss:.4g}, of which {term} can be at most {most:.4g}"
    ends = (
        f"predictions have a standard deviation of {given.prediction.std:.3g}"
        if is_squared
        else f"log-probabilities are {given.prediction.low:.3f} to {given.prediction.high:.3f}; a "
        f"uniform output over {given.classes} classes has {-log(given.classes):.3f}"
    )
    outputs = "constant" if is_squared else "uniform"
    yield finding(
        f"Another loss term dominates: the total loss starts at {first.loss:.4g}, {term} is at "
        f"most {most:.3g} of it, and the outputs end up {outputs}",
        {CAUSE: Strength.STRONG},
        cite_record(process, first.line, says, step=float(first.step), loss=first.loss),
        cite_record(process, last.line, ends, step=float(last.step), loss=last.loss),
        place=last.place,
    )


def _process(losses: tuple[float, ...], given: Callable[[int], LossInput]) -> Process:
    fields = {"loss": lambda i: losses[i], "losses": lambda i: (given(i),)}
    made = sampled(len(losses), step=lambda i: 20 * i, **fields)
    return replace(made, counts=Counts(99, steps=20 * len(losses)))


def _run(losses: tuple[float, ...], width: float) -> Process:
    """A classifier whose log-probabilities end within a width about those of uniform outputs."""

    def given(i: int) -> LossInput:
        low, high = (-log(10) + sign * (width if i else 0.3) for sign in (-1, 1))
        prediction = Summary(shape=(50, 10), low=low, high=high)
        return LossInput("cross_entropy", "addmm", prediction, classes=10)

    return _process(losses, given)


_RULED = (900.0, 60.0, 9.0, 4.0, 2.6, 2.4)


def _squared(losses: tuple[float, ...], spread: float) -> Run:
    """A regression whose predictions end with a spread."""

    def given(i: int) -> LossInput:
        prediction = Summary(shape=(64, 1), mean=0.0, std=spread if i else 0.06)
        return LossInput(SQUARED, "addmm", prediction, Summary(mean=0.1, std=1.0))

    return recorded(_process(losses, given))


FIRES = {
    "a penalty a hundredfold too large": recorded(_run(_RULED, 0.01)),
    "a penalty on the outputs of a regression": _squared((58.0, 5.0, 2.0, 1.2, 1.0, 1.0), 1e-3),
}

SILENT = {
    "near miss: a large penalty beside outputs that tell": recorded(_run(_RULED, 1.5)),
    "near miss: cross-entropy summed over the batch": recorded(
        _run((125.0, 122.0, 119.0, 117.0, 116.0, 60.0), 0.01)
    ),
    "near miss: summed, and a penalty of its size": recorded(
        _run((500.0, 300.0, 200.0, 150.0, 130.0, 116.0), 0.01)
    ),
    "near miss: scaled by a gradient scaler": recorded(
        replace(_run(_RULED, 0.01), counts=Counts(99, steps=120, scaled=120))
    ),
    "near miss: a regression that learns beside a penalty": _squared((58.0, 5.0, 2.0, 0.2), 0.9),
    "near miss: a squared error summed over the batch": _squared((72.0, 70.0, 66.0, 32.0), 1e-3),
    "near miss: a regression that learns nothing": _squared((1.1, 1.0, 1.0, 1.0, 1.0), 1e-3),
    "cross-entropy alone": recorded(_run((2.3, 2.0, 1.5, 1.0, 0.7, 0.5), 2.0)),
}
