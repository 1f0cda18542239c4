"""The loss that is minimised is mostly not the one that sees the labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite, log
from typing import Any

from traindx.evidence import Finding, Strength, at, cite_record
from traindx.examples import recorded
from traindx.model import Run
from traindx.recording import Counts, LossInput, Process, Sample, Summary
from traindx.registry import detector
from traindx.runtime.observations import late_samples, rows
from traindx.runtime.traces import told_once

CAUSE = "competing-losses"
RULES = 5.0  # the loss over the most that its classification term can be
ENOUGH = 4  # samples
UNIFORM = 0.1  # how far log-probabilities may be from those of a model that knows nothing


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Iterator[Finding]:
    """Most of the loss comes from another term, and the outputs end up alike for every class.

    ## What it detects
    A total loss that begins at several times what its cross-entropy can be at all (no more than its
    least log-probability), falls, and leaves every class equally likely for every example.

    ## Why it matters
    The optimizer minimises the sum. A penalty or a second task that outweighs the labels by far is
    solved first, here at the price of outputs that say nothing.

    ## What to do
    Log every term by itself. Lower the weight of the large one, or take its mean instead of its
    sum, until both fall.

    ## When it is wrong
    A loss summed over the batch ends at the sum for uniform outputs and is compared with it. A run
    that is stopped early may have outputs that are still near uniform, so the loss must have
    fallen.
    """
    yield from told_once(run, _look)


def _look(process: Process) -> Iterator[Finding]:
    told = [s for s in process.samples if isfinite(s.loss) and len(s.losses) == 1]
    is_scaled = process.counts is not None and process.counts.scaled
    late = [s for s in late_samples(process) if len(s.losses) == 1]
    if is_scaled or len(told) < ENOUGH or not late:
        return
    first, last = told[0], late[-1]
    most = _most(first, last)
    if most is None or first.loss < RULES * most or last.loss > 0.5 * first.loss:
        return
    if not all(_is_uniform(s.losses[0]) for s in late):
        return
    given = last.losses[0]
    says = f"the loss is {first.loss:.4g}, of which cross-entropy can be {most:.4g} at most"
    ends = (
        f"log-probabilities from {given.prediction.low:.3f} to {given.prediction.high:.3f}: "
        f"{given.classes} classes that are equally likely have {-log(given.classes):.3f}"
    )
    yield Finding(
        claim=f"Another term rules the loss: it begins at {first.loss:.4g}, cross-entropy makes up "
        f"{most:.3g} of it at most, and the outputs end up uniform",
        strength=Strength.STRONG,
        evidence=(
            cite_record(process, first.line, says, step=float(first.step), loss=first.loss),
            cite_record(process, last.line, ends, step=float(last.step), loss=last.loss),
        ),
        suggests={CAUSE: Strength.STRONG},
        is_symptom=True,
        onset=float(first.step),
        location=at(last.place),
    )


def _most(first: Sample, last: Sample) -> float | None:
    """The most that the cross-entropy of the first batch can be; none if that is not known."""
    given = first.losses[0]
    low, size = given.prediction.low, max(1, rows(given.prediction.shape))
    if given.loss not in ("cross_entropy", "nll_loss") or given.classes < 2:
        return None
    if not isfinite(low) or low >= 0:
        return None
    # summed over its examples, the cross-entropy of uniform outputs is as many times as large
    is_summed = last.loss >= 0.5 * size * log(given.classes)
    return -low * (size if is_summed else 1)


def _is_uniform(given: LossInput) -> bool:
    if given.classes < 2:
        return False
    level = -log(given.classes)
    ends = (given.prediction.low, given.prediction.high)
    return all(isfinite(e) and abs(e - level) < UNIFORM for e in ends)


def _sample(step: int, loss: float, width: float, **told: Any) -> Sample:
    level = -log(10)
    prediction = Summary(shape=(50, 10), low=level - width, high=level + width)
    given = LossInput("cross_entropy", "addmm", prediction, classes=10)
    return Sample(step + 4, step, loss=loss, losses=(given,), **told)


def _run(losses: tuple[float, ...], width: float) -> Process:
    samples = tuple(
        _sample(20 * i, loss, 0.3 if i == 0 else width) for i, loss in enumerate(losses)
    )
    return Process(samples=samples, counts=Counts(99, steps=20 * len(losses)))


_RULED = (900.0, 60.0, 9.0, 4.0, 2.6, 2.4)

FIRES = {"a penalty a hundredfold too large": recorded(_run(_RULED, 0.01))}

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
    "cross-entropy alone": recorded(_run((2.3, 2.0, 1.5, 1.0, 0.7, 0.5), 2.0)),
}
