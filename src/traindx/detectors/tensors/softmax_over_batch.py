from traindx.analysis.steps.axes import normalised_over_examples
from traindx.analysis.steps.step_graph import steps_of
from traindx.examples import captured, step_of
from traindx.registry import Findings, Run, detector, finding

CAUSE = "api-misuse"


@detector(needs=("step",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A softmax runs over the examples of a batch instead of the classes.

    ## What it detects
    In the operations of a captured step: softmax or log-softmax with `dim=0` over outputs of shape
    (examples, classes), on the way to a loss or in an evaluation.

    ## Why it matters
    Each class becomes a distribution over the batch: what one example gets depends on the others,
    and the loss rewards being more certain than one's neighbours.

    ## What to do
    Pass `dim=-1` (or `dim=1` for outputs with further dimensions).

    ## When it is wrong
    Contrastive losses take both directions of a square table of similarities; those are left alone.
    """
    for step in steps_of(run):
        for act in normalised_over_examples(step):
            shape = act.inputs[0].shape
            says = f"`{act.name}` over dim 0 of {shape}, which has {shape[0]} examples"
            claim = f"`{act.name}` runs over the batch instead of the classes"
            yield finding(claim, CAUSE, step.cite(act, says), place=act.place)
            return


_STEP = """
x: batch/0 (32, 8)
y: batch/1 (32)
w: parameter:fc.weight ({classes}, 8)
o (32, {classes}) = mm(x, w) in fc
p (32, {classes}) = {name}(o) @ 21
loss () = nll_loss(p, y)
"""


def _run(dim: int, name: str = "log_softmax", classes: int = 10) -> Run:
    step = step_of(_STEP.format(name=name, classes=classes), p={"settings": {"dim": dim}})
    return captured(step)


FIRES = {"log-softmax over dim 0": _run(0), "softmax over dim -2": _run(-2, "softmax")}

SILENT = {
    "over the classes": _run(1),
    "near miss: both directions of a table of similarities": _run(0, classes=32),
    "near miss: the last dimension by its negative number": _run(-1, "softmax"),
}
