from traindx.analysis.recordings.observations import operation, spans, terms_in
from traindx.analysis.recordings.predictions import are_probabilities
from traindx.analysis.steps.softmax_inputs import softmax_of_probabilities
from traindx.analysis.steps.step_graph import steps_of
from traindx.examples import LossInput, Place, captured, recorded, sampled, step_of
from traindx.registry import Findings, Run, detector, finding, suggested

CAUSE = "softmax-before-cross-entropy"
WRONG = {"cross_entropy": ("softmax", "sigmoid"), "bce_with_logits": ("softmax", "sigmoid")}


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The graph of the loss holds a softmax or sigmoid below a loss that applies its own.

    ## What it detects
    In the graph that `backward` walked: cross-entropy or BCE-with-logits whose input was made by a
    softmax or sigmoid. Where the graph does not tell, logits whose rows sum to one in every sample;
    in a captured step, a log-softmax of model outputs that add up to one already, however written.

    ## Why it matters
    The loss normalises again. With C classes the loss cannot fall below ln(e + C - 1) - 1 (1.46 for
    ten classes), gradients are small, and training is slow or stalls.

    ## What to do
    Return logits from the model; apply softmax only where probabilities are shown.

    ## When it is wrong
    Log-softmax before cross-entropy is redundant and harmless, and is left alone; so are gates and
    attention whose softmax is further down in the model, and values that sum to one now and then.
    """
    for step in steps_of(run, training=True):
        for act in softmax_of_probabilities(step):
            says = "what it is given adds up to one over the classes"
            claim = "The loss applies a softmax to values that are probabilities already"
            yield finding(claim, CAUSE, step.cite(act, says), place=act.place)
            return
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


_STEP = """
x: batch/0 (32, 8)
y: batch/1 (32)
w: parameter:fc.weight (10, 8)
o (32, 10) = mm(x, w) in fc
e (32, 10) = exp(o)
s (32, 1) = sum(e)
p (32, 10) = div(e, s)
l (32, 10) = {name}({given}) @ 31
loss () = nll_loss(l, y)
"""


def _step(given: str = "p", name: str = "log_softmax") -> Run:
    facts = {"low": 0.01, "high": 0.9, "ones": (1,)}
    text = _STEP.format(given=given, name=name)
    return captured(step_of(text, p=facts, l={"settings": {"dim": 1}}))


FIRES = {
    "exp over its sum, in a captured step": _step(),
    "softmax": _run("softmax", sums=True),
    "sigmoid before BCE with logits": _run("SigmoidBackward0", loss="bce_with_logits"),
    "the graph does not tell": _run("", sums=True),
}

SILENT = {
    "near miss: the logarithm of probabilities written by hand": _step(name="log"),
    "near miss: probabilities that the loss does not see": _step("o"),
    "logits": _run("addmm"),
    "near miss: log-softmax, redundant and harmless": _run("log_softmax", sums=True),
    "near miss: log-softmax with NLL": _run("log_softmax", loss="nll_loss"),
    "near miss: sigmoid with BCELoss": _run("sigmoid", loss="bce"),
    "near miss: one sample by chance": _run("", sums=True, count=1),
}
