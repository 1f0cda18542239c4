from traindx.analysis.recordings.loss_labels import class_change, class_words
from traindx.analysis.recordings.observations import Term, processes_of, terms_of
from traindx.examples import recorded, sampled
from traindx.model.recording import LossInput, Process
from traindx.registry import Finding, Findings, Run, cite_record, detector, finding, suggested

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
    for process in processes_of(run):
        for term in terms_of(process, "cross_entropy", "nll_loss"):
            after = class_change(process, term)
            if after is not None:
                yield _finding(process, term, after)
                return


def _finding(process: Process, term: Term, after: int) -> Finding:
    old, new = term.labels(0, after), term.labels(after)
    last, first = term.samples[after - 1], term.samples[after]
    says = f"up to step {last.step} the labels are {class_words(old)}"
    then = f"from step {first.step} on the labels are {class_words(new)}"
    return finding(
        f"After step {last.step} only new classes are trained, and none of the old ones",
        CAUSE,
        cite_record(process, last.line, says, step=last.step),
        cite_record(process, first.line, then, step=first.step),
        against=suggested("lr-too-high missing-gradient-clipping"),
        onset=first.step,
        place=first.place,
    )


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
