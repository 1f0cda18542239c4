"""In a contrastive loss every example is as near to all others as to its partner."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, isfinite, log

from traindx.evidence import Finding, Strength, at, cite_record
from traindx.examples import recorded
from traindx.model import Run
from traindx.recording import Counts, LossInput, Process, Sample, Summary
from traindx.registry import detector
from traindx.runtime.observations import (
    Term,
    last_step,
    medians,
    processes_of,
    rows,
    spans,
    terms_of,
)

CAUSE = "representation-collapse"
ALIKE = 0.1  # between the largest and the smallest log-probability or logit of a batch
AT_CHANCE = 0.02  # of the logarithm of the number of candidates
EXAMPLES = 8  # of a batch
ENOUGH = 3  # late samples
FADED = 1e-3  # of the largest gradient: what half of the parameters get at least
STEPS = 100  # fresh embeddings are alike


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Iterator[Finding]:
    """The similarities of a batch are all the same, and the contrastive loss stays at chance.

    ## What it detects
    A cross-entropy over a square of similarities, each row with a label of its own, whose logits
    differ by less than a tenth in every late sample, while gradients flow and the loss stays at the
    logarithm of the batch size.

    ## Why it matters
    The loss cannot tell a pair from strangers: the embeddings are all alike, or a temperature far
    too high makes their differences vanish.

    ## What to do
    Print the standard deviation of the normalised embeddings. If it is near 0, look for what makes
    them equal; if it is not, lower the temperature (0.05 to 0.5 is usual).

    ## When it is wrong
    The first hundred steps are left alone, and so are networks in which gradients fade or are not
    there at all, whose fault is another one.
    """
    for process in processes_of(run):
        if last_step(process) < STEPS:
            continue
        for term in terms_of(process, "cross_entropy"):
            late = term.late(process)
            if len(late) >= ENOUGH and all(_is_alike(s, i) for s, i in late.pairs()):
                yield _finding(process, late)
                return


def _is_alike(sample: Sample, given: LossInput) -> bool:
    """A square of similarities that says the same of all, below which gradients flow."""
    shape, labels = given.prediction.shape, given.labels
    is_square = len(shape) == 2 and rows(shape) == given.classes >= EXAMPLES
    has_own_labels = len(labels) >= EXAMPLES and max(labels.values(), default=0) == 1
    width = given.prediction.high - given.prediction.low
    chance = log(max(2, given.classes))
    is_at_chance = abs(sample.loss - chance) < AT_CHANCE * chance
    return is_square and has_own_labels and width < ALIKE and is_at_chance and _flows(sample)


def _flows(sample: Sample) -> bool:
    """Tell whether gradients reach most parameters; where they fade, that is the fault."""
    known = [g for g in sample.grad_norms if g is not None and isfinite(g)]
    return bool(known) and medians(known) > FADED * max(known)


def _finding(process: Process, late: Term) -> Finding:
    last, given = late.samples[-1], late.inputs[-1]
    ratio = exp(max(i.prediction.high - i.prediction.low for i in late.inputs))
    says = (
        f"in all {len(late)} samples, {spans(late.samples)}, the likeliest of all pairs is at most "
        f"{ratio:.3g} times as likely as the least; the loss is {last.loss:.4g}, and chance among "
        f"{given.classes} is {log(given.classes):.4g}"
    )
    return Finding(
        claim="Every example is as similar to all others of its batch as to its partner",
        strength=Strength.STRONG,
        evidence=(cite_record(process, last.line, says, step=float(last.step)),),
        suggests={CAUSE: Strength.STRONG},
        is_symptom=True,
        onset=float(late.samples[0].step),
        location=at(last.place),
    )


def _run(
    width: float, *, loss: float = 4.15, steps: int = 400, low_grad: float = 1e-4,
    classes: int = 64, is_labelled: bool = False,
) -> Run:  # fmt: skip
    shape = (64, classes)
    given = LossInput(
        "cross_entropy",
        "div",
        Summary(shape=shape, low=-4.16 - width / 2, high=-4.16 + width / 2),
        Summary(shape=(64,)),
        classes=classes,
        labels={str(i): 8 if is_labelled else 1 for i in range(8 if is_labelled else 64)},
    )
    samples = tuple(
        Sample(
            i + 1, steps * i // 8, loss=loss, losses=(given,), grad_norms=(low_grad, low_grad, 1e-4)
        )
        for i in range(9)
    )
    return recorded(Process(samples=samples, counts=Counts(20, steps=steps)))


FIRES = {"all alike": _run(0.02)}

SILENT = {
    "pairs stand out": _run(6.0, loss=1.2),
    "near miss: at chance, and similarities differ": _run(1.5),
    "near miss: the first steps": _run(0.02, steps=60),
    "near miss: the gradient fades": _run(0.0, low_grad=1e-13),
    "near miss: a classifier whose labels repeat": _run(0.02, is_labelled=True),
    "near miss: a classifier with fewer classes": _run(0.02, classes=10),
}
