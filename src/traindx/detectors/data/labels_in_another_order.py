from traindx.analysis.steps.pairs import lone_shuffle
from traindx.analysis.steps.step_graph import steps_of
from traindx.examples import captured, step_of
from traindx.registry import Findings, Run, detector, finding

CAUSE = "misaligned-labels"


@detector(needs=("step",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """Labels are put into another order than their inputs before the loss.

    ## What it detects
    In the operations of a captured step: a permutation of the batch that the labels go through on
    their way to the loss and the inputs do not, or the other way round.

    ## Why it matters
    Every example is trained with the label of another one. The model can learn the class
    frequencies and nothing else.

    ## What to do
    Index inputs and labels with the same permutation.

    ## When it is wrong
    Mixup and contrastive losses use a tensor in two orders at once; those are left alone.
    """
    for step in steps_of(run, training=True):
        shuffle = lone_shuffle(step)
        if shuffle is not None:
            which = "labels" if shuffle.of in step.labels else "inputs"
            says = f"{shuffle.of.label} is put into another order here"
            claim = f"Only the {which} of the batch are shuffled before the loss"
            yield finding(claim, CAUSE, step.cite(shuffle.act, says), place=shuffle.act.place)
            return


_STEP = """
x: batch/0 (32, 8)
y: batch/1 (32)
i: outside (32)
w: parameter:fc.weight (10, 8)
{lines}
o (32, 10) = mm({x}, w) in fc
p (32, 10) = log_softmax(o)
loss () = nll_loss(p, {y})
"""
_ORDER = {"is_permutation": True, "is_whole": True}


_PACKED = """
x: batch/0 (32, 8)
y: batch/1 (32)
i: outside (32)
j: outside (32)
w: parameter:rnn.weight (10, 8)
px (32, 8) = index_select(x, i) in rnn
h (32, 10) = mm(px, w) in rnn
o (32, 10) = index_select(h, j) in rnn
p (32, 10) = log_softmax(o)
loss () = nll_loss(p, y)
"""


def _run(lines: str, x: str = "x", y: str = "y") -> Run:
    return captured(step_of(_STEP.format(lines=lines, x=x, y=y), i=_ORDER))


_BOTH = "px (32, 8) = index(x, i)\npy (32) = index(y, i)"
_MIXUP = "px (32, 8) = index(x, i)\nm (32, 8) = add(x, px)"

FIRES = {
    "labels": _run("py (32) = index(y, i)", y="py"),
    "inputs": _run("px (32, 8) = index_select(x, i)", x="px"),
}

SILENT = {
    "both": _run(_BOTH, "px", "py"),
    "near miss: mixup": _run(_MIXUP, "m"),
    "near miss: sorted by length, and put back": captured(step_of(_PACKED, i=_ORDER, j=_ORDER)),
    "near miss: a shuffled copy that nobody trains on": _run("py (32) = index(y, i)"),
}
