from traindx.analysis.recordings.loss_labels import class_change, class_words
from traindx.analysis.recordings.observations import terms_in
from traindx.examples import LossInput, recorded, sampled
from traindx.registry import Findings, Run, detector, finding, suggested

CAUSE = "catastrophic-forgetting"


@detector(needs=("recording",), suggests=(CAUSE, "data-distribution-change"))
def check(run: Run) -> Findings:
    """From some step on all labels are of classes that were not trained before, and none is old.

    ## What it detects
    Labels of a loss over classes that fall in two parts: up to a step only some classes, after it
    only others, for a good part of the training on either side.

    ## Why it matters
    The model forgets the first classes while it learns the second ones: nothing holds them in
    place. The loss jumps where the classes change, which looks like a divergence.

    ## What to do
    Mix the classes in every batch; where tasks must follow each other, replay old examples, freeze
    shared layers, or regularise towards the old weights.

    ## When it is wrong
    Data that are sorted within a pass come back in the next one, and are not meant here. A study of
    class-incremental learning does this on purpose, and will want to know all the same.
    """
    for term in terms_in(run, "cross_entropy", "nll_loss"):
        after = class_change(term)
        if after is None:
            continue
        old, new = class_words(term.labels(0, after)), class_words(term.labels(after))
        last, first = term.samples[after - 1], term.samples[after]
        yield finding(
            f"After step {last.step} only new classes are trained, and none of the old ones",
            CAUSE,
            term.cite(f"up to step {last.step} the labels are {old}", after - 1),
            term.cite(f"from step {first.step} on the labels are {new}", after),
            against=suggested("lr-too-high missing-gradient-clipping"),
            onset=first.step,
            place=first.place,
        )
        return


def _run(*labels: dict[str, int]) -> Run:
    losses = [(LossInput("cross_entropy", classes=6, labels=x),) for x in labels]
    return recorded(sampled(len(labels), losses=lambda i: losses[i]))


_EVEN = {"0": 10, "2": 12, "4": 10}
_ODD = {"1": 10, "3": 11, "5": 11}

FIRES = {"one task after the other": _run(*[_EVEN] * 5, *[_ODD] * 4)}

SILENT = {
    "all classes at once": _run(*[_EVEN | _ODD] * 9),
    "near miss: sorted, and it comes again": _run(*[_EVEN] * 3, *[_ODD] * 3, *[_EVEN] * 3),
    "near miss: a new class joins the old ones": _run(*[_EVEN] * 5, *[_EVEN | {"5": 9}] * 4),
    "near miss: the last batches only": _run(*[_EVEN] * 19, *[_ODD] * 2),
    "near miss: of few examples": _run(*[{"0": 4}] * 5, *[{"1": 4}] * 4),
}
