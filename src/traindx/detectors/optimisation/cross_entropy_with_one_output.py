from traindx.analysis.recordings.observations import Term, processes_of, shape_words, terms_of
from traindx.examples import recorded, sampled
from traindx.model.recording import LossInput, Process, Summary
from traindx.registry import Finding, Findings, Run, cite_record, detector, finding

CAUSE = "wrong-loss-for-task"
ENOUGH = 2  # samples
NOTHING = 1e-6  # the loss of a softmax over one class


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Cross-entropy is given one class in every sample.

    ## What it detects
    A cross-entropy whose input has a single class in every sampled step, where it is the only loss
    or the loss as a whole is 0.

    ## Why it matters
    The softmax over one class is 1 and its loss 0 for any weights: no gradient, nothing is learnt.

    ## What to do
    For two classes with one output: `BCEWithLogitsLoss`. Otherwise one output unit per class.

    ## When it is wrong
    Candidates that are scored against each other may be down to one in a single step; samples with
    more than one class end the suspicion.
    """
    for process in processes_of(run):
        terms = terms_of(process, "cross_entropy")
        if any(i.classes != 1 for t in terms for i in t.inputs):
            continue
        for term in terms:
            if len(term) >= ENOUGH and _is_all(term):
                yield _finding(process, term)
                return


def _is_all(term: Term) -> bool:
    return all(len(s.losses) == 1 or abs(s.loss) < NOTHING for s in term.samples)


def _finding(process: Process, term: Term) -> Finding:
    first, given = term.samples[0], term.inputs[0]
    shape = shape_words(given.prediction.shape) if given.prediction.shape else "one column"
    says = f"cross_entropy gets logits of shape {shape}, one class, in all {len(term)} samples"
    return finding(
        "Cross-entropy over a single output is always 0",
        CAUSE,
        cite_record(process, first.line, says, step=float(first.step), loss=first.loss),
        place=first.place,
    )


def _run(*classes: int, others: int = 0, loss: float = 0.0) -> Run:
    def term(count: int) -> LossInput:
        return LossInput("cross_entropy", "addmm", Summary(shape=(32, count)), classes=count)

    other = tuple(LossInput("mse_loss") for _ in range(others))
    fields = {"loss": loss, "losses": lambda i: (term(classes[i]), *other)}
    return recorded(sampled(len(classes), **fields))


FIRES = {"one output": _run(1, 1, 1)}

SILENT = {
    "two classes": _run(2, 2, 2),
    "near miss: candidates of varying number": _run(1, 4, 3),
    "near miss: one term of several": _run(1, 1, 1, others=1, loss=0.7),
}
