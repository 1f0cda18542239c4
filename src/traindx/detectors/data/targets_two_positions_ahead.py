from typing import Any

from traindx.analysis.steps.step_graph import steps_of
from traindx.analysis.steps.token_targets import far_targets
from traindx.examples import captured, step_of
from traindx.registry import Findings, Run, detector, finding

CAUSE = "misaligned-labels"


@detector(needs=("step",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A language model is taught the token after the next one: its labels are shifted twice.

    ## What it detects
    In the operations of a captured step: the targets of the loss are the tokens that the model was
    given, two or more positions further on, and its outputs were not cut to match.

    ## Why it matters
    The model learns to skip a token. The loss falls, to a higher level, and what it generates is
    garbled.

    ## What to do
    Shift once: labels of the models of transformers are the input ids themselves, for these models
    shift inside; or shift in the data set and compute the loss from the logits.

    ## When it is wrong
    A head that predicts several tokens ahead on purpose, beside one for the next token, is left
    alone. Positions at which inputs and outputs come from other tokens are not compared.
    """
    for step in steps_of(run, training=True):
        for act in far_targets(step):
            ahead = act.record.ahead
            says = f"the targets are the tokens {ahead} positions ahead of their inputs"
            claim = f"The labels are shifted twice: every target is {ahead} tokens ahead"
            yield finding(claim, CAUSE, step.cite(act, says), place=act.place)
            return


_STEP = """
t: batch/0 (8, 32)
y: batch/1 (8, 32)
w: parameter:tok.weight (100, 16)
v: parameter:head.weight (100, 16)
h (8, 32, 16) = embedding(w, t) in tok
o (8, 32, 100) = mm(h, v) in head
{lines}
loss () = {loss}({o}, y)
"""


def _run(ahead: int | None, lines: str = "", o: str = "o", loss: str = "nll_loss") -> Run:
    facts: dict[str, Any] = {"loss": {"ahead": ahead}, "c": {"settings": {"dim": 1, "start": 1}}}
    return captured(step_of(_STEP.format(lines=lines, o=o, loss=loss), **facts))


_FRONT = "c (8, 31, 100) = slice(o)"

FIRES = {
    "shifted by the data set and by the model": _run(2),
    "gathered by hand": _run(2, loss="gather"),
    "shifted three times": _run(3),
}

SILENT = {
    "the next token": _run(1),
    "the token itself, as of masked ones": _run(0),
    "near miss: the outputs were cut in front": _run(2, _FRONT, "c"),
    "near miss: targets that are no later tokens": _run(None),
}
