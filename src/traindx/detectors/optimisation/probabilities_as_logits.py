from traindx.analysis.recordings.observations import operation, spans, terms_in
from traindx.analysis.recordings.predictions import are_probabilities
from traindx.examples import recorded, sampled
from traindx.model.recording import LossInput, Place
from traindx.registry import Findings, Run, detector, finding, suggested

CAUSE = "softmax-before-cross-entropy"
WRONG = {"cross_entropy": ("softmax", "sigmoid"), "bce_with_logits": ("softmax", "sigmoid")}


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The graph of the loss holds a softmax or sigmoid below a loss that applies its own.

    ## What it detects
    In the graph that `backward` walked: cross-entropy or BCE-with-logits whose input was made by a
    softmax or sigmoid. Where the graph does not tell, logits whose rows sum to one in every sample.

    ## Why it matters
    The loss normalises again. With C classes the loss cannot fall below ln(e + C - 1) - 1 (1.46 for
    ten classes), gradients are small, and training is slow or stalls.

    ## What to do
    Return logits from the model; apply softmax only where probabilities are shown.

    ## When it is wrong
    Log-softmax before cross-entropy is redundant and harmless, and is left alone; so are gates and
    attention whose softmax is further down in the model, and values that sum to one now and then.
    """
    for term in terms_in(run, *WRONG):
        loss = term.inputs[0].loss
        made_by = {operation(i.producer) for i in term.inputs}
        producer = next(iter(made_by)) if len(made_by) == 1 else ""
        is_shown = producer in WRONG[loss]
        if is_shown:
            claim = f"A {producer} is applied before {loss}, which applies its own"
            says = f"the graph of the loss has {producer} below {loss}, {spans(term.samples)}"
        elif are_probabilities(term):
            claim = f"The input of {loss} is probabilities instead of logits; its rows sum to one"
            says = f"rows sum to one in all {term.seen}"
        else:
            continue
        cause, place = CAUSE if is_shown else suggested(CAUSE), term.samples[0].place
        yield finding(claim, cause, term.cite(says, 0), place=place)
        return


_LINE = Place("train.py", 40, "train", "loss.backward()")


def _run(producer: str, sums: bool = False, loss: str = "cross_entropy", count: int = 4) -> Run:
    term = LossInput(loss, producer, rows_sum_to_one=sums, classes=10)
    return recorded(sampled(count, losses=(term,), place=_LINE))


FIRES = {
    "softmax": _run("softmax", sums=True),
    "sigmoid before BCE with logits": _run("SigmoidBackward0", loss="bce_with_logits"),
    "the graph does not tell": _run("", sums=True),
}

SILENT = {
    "logits": _run("addmm"),
    "near miss: log-softmax, redundant and harmless": _run("log_softmax", sums=True),
    "near miss: log-softmax with NLL": _run("log_softmax", loss="nll_loss"),
    "near miss: sigmoid with BCELoss": _run("sigmoid", loss="bce"),
    "near miss: one sample by chance": _run("", sums=True, count=1),
}
