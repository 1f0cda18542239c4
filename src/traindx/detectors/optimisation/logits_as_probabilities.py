import re

from traindx.analysis.recordings.observations import (
    operation,
    own_place,
    place_words,
    processes_of,
    spans,
    summary_words,
    terms_of,
)
from traindx.examples import recorded, sampled
from traindx.model.recording import Caught, LossInput, Place, Process, Summary
from traindx.registry import Finding, Findings, Run, Strength, cite_record, detector, finding

CAUSE = "loss-expects-probabilities"
ROUNDING = 1e-3  # a logarithm of a probability may lie above 0 by that much
ENOUGH = 2  # samples
OUTSIDE = re.compile(r"all elements of input should be between 0 and 1")


@detector(needs=("recording",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """NLL loss gets values that are no log-probabilities, or BCE values outside of 0 to 1.

    ## What it detects
    A negative log-likelihood whose input has values above 0, which no logarithm of a probability
    has, or comes straight from a softmax; and the error of a binary cross-entropy whose input is
    outside of 0 to 1, with the tensor that was outside.

    ## Why it matters
    Without the logarithm the loss has no lower bound: it falls for ever, by growing logits, while
    the accuracy stays poor.

    ## What to do
    `F.cross_entropy` on logits in place of NLL, `BCEWithLogitsLoss` in place of BCE.

    ## When it is wrong
    Scores that are meant to be picked by NLL (log-densities, which may be above 0) look the same.
    """
    for process in processes_of(run):
        for caught in process.caught:
            if OUTSIDE.search(caught.message):
                yield _from_error(process, caught)
                return
        for term in terms_of(process, "nll_loss"):
            producers = {operation(i.producer) for i in term.inputs}
            highest = min(i.prediction.high for i in term.inputs)
            if len(term) < ENOUGH or "log_softmax" in producers:
                continue
            if producers == {"softmax"}:
                claim = "NLL loss gets probabilities instead of log-probabilities"
                says = f"the graph of the loss has softmax below nll_loss, {spans(term.samples)}"
            elif highest > ROUNDING:
                claim = (
                    f"NLL loss gets values up to {highest:.3g}, but log-probabilities are at most 0"
                )
                says = f"the input of nll_loss exceeds 0 in all {term.seen}"
            else:
                continue
            cited = term.cite(says, 0, high=highest)
            yield finding(claim, CAUSE, cited, place=term.samples[0].place)
            return


def _from_error(process: Process, caught: Caught) -> Finding:
    place = own_place(caught.places)
    outside = [(w, s) for w, s in caught.tensors if s.low < 0.0 or s.high > 1.0]
    floats = [(w, s) for w, s in outside if "float" in s.dtype]
    cited = [cite_record(process, caught.line, caught.message[:200], step=float(caught.step))]
    cited += [
        cite_record(process, caught.line, f"{where}: {summary_words(s)}", step=float(caught.step))
        for where, s in floats[:3]
    ]
    return finding(
        f"Binary cross-entropy gets values outside of 0 to 1{place_words(place)}",
        CAUSE,
        *cited,
        against={"label-out-of-range": Strength.STRONG},
        place=place,
    )


def _run(producer: str, high: float, loss: str = "nll_loss") -> Run:
    given = Summary("input", (32, 10), "float32", "cpu", -4.0, high, -1.0, 1.0)
    term = LossInput(loss, producer, given, classes=10)
    return recorded(sampled(4, losses=(term,)))


_OUT = Summary("out", (16, 1), "float32", "cpu", -1.5, 2.5, 0.1, 1.0)
_ERROR = Caught(
    7, "RuntimeError", "all elements of input should be between 0 and 1", 3,
    places=(Place("train.py", 12),), tensors=(("train, line 12", _OUT),),
)  # fmt: skip

FIRES = {
    "logits": _run("addmm", 3.1),
    "probabilities": _run("softmax", 1.0),
    "an error of BCE": recorded(Process(caught=(_ERROR,))),
}

SILENT = {
    "near miss: log-softmax, reshaped on the way": _run("view", -0.01),
    "near miss: log-softmax and rounding": _run("view", 1e-6),
    "log-softmax": _run("log_softmax", 0.0),
    "cross-entropy on logits": _run("addmm", 9.0, "cross_entropy"),
}
