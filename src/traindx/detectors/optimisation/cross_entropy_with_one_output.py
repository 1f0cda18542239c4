from traindx.analysis.recordings.observations import shape_words, terms_in, terms_of
from traindx.examples import LossInput, Summary, recorded, sampled
from traindx.registry import Findings, Run, detector, finding

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
    for term in terms_in(run, "cross_entropy"):
        others = terms_of(term.process, "cross_entropy")
        is_alone = all(len(s.losses) == 1 or abs(s.loss) < NOTHING for s in term.samples)
        if any(i.classes != 1 for t in others for i in t.inputs) or not is_alone:
            continue
        if len(term) < ENOUGH:
            continue
        first, shape = term.samples[0], term.inputs[0].prediction.shape
        given = shape_words(shape) if shape else "one column"
        says = f"cross_entropy gets logits of shape {given}, one class, in all {len(term)} samples"
        cited = term.cite(says, 0, loss=first.loss)
        yield finding(
            "Cross-entropy over a single output is always 0", CAUSE, cited, place=first.place
        )
        return


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
