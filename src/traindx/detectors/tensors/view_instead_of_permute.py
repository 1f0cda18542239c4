from traindx.analysis.steps.axes import reorderings
from traindx.analysis.steps.step_graph import steps_of
from traindx.examples import CapturedStep, captured, step_of
from traindx.registry import Findings, Run, detector, finding, suggested

IMAGES = 4  # dimensions: examples, channels, height and width
CHANNELS = "channel-mismatch"
SHAPES = "shape-mismatch"


@detector(needs=("step",), suggests=(CHANNELS, SHAPES))
def check(run: Run) -> Findings:
    """A view or reshape swaps dimensions, and leaves every value where it was.

    ## What it detects
    In the operations of a captured step: a `view` or `reshape` whose result has the same sizes in
    another order, such as (16, 28, 28, 3) to (16, 3, 28, 28), on the way to a loss or in an
    evaluation.

    ## Why it matters
    `view` does not move values. Pixels of different channels, or values of different examples and
    times, end up side by side; the model trains on scrambled inputs and learns little.

    ## What to do
    Use `permute` or `transpose`, and `contiguous()` after it where a view follows.

    ## When it is wrong
    Where dimensions of size one move, nothing is scrambled, and nothing is said. Sizes that agree
    by coincidence (heads split off) differ for another batch size; with one size alone the claim
    is a suggestion.
    """
    for found in reorderings(list(steps_of(run))):
        act = found.act
        before, after = act.inputs[0].shape, act.outputs[0].shape
        says = f"`{act.name}` makes {after} of {before}"
        claim = f"`{act.name}` is used to swap dimensions, which scrambles the values"
        cause = CHANNELS if len(before) == IMAGES else SHAPES
        evidence = act.step.cite(act, says)
        shown = cause if found.is_certain else suggested(moderate=cause)
        yield finding(claim, shown, evidence, place=act.place, is_symptom=found.is_certain)
        return


_STEP = """
x: batch/0 {before}
y: batch/1 (16)
w: parameter:conv.weight (8, 3, 3, 3)
v {after} = {name}(x) @ 12
h (16, 8, 26, 26) = convolution(v, w) in conv
loss () = mean(h)
"""


def _step(before: str, after: str, name: str = "view") -> CapturedStep:
    return step_of(_STEP.format(before=before, after=after, name=name))


def _run(before: str, after: str, name: str = "view") -> Run:
    return captured(_step(before, after, name))


FIRES = {
    "channels last to channels first": _run("(16, 28, 28, 3)", "(16, 3, 28, 28)"),
    "time first": _run("(16, 50, 8)", "(50, 16, 8)", "reshape"),
}

SILENT = {
    "permute": _run("(16, 28, 28, 3)", "(16, 3, 28, 28)", "permute"),
    "near miss: a dimension of one moves": _run("(16, 28, 28, 1)", "(16, 1, 28, 28)"),
    "near miss: heads are split off": _run("(16, 50, 64)", "(16, 50, 4, 16)"),
    "near miss: heads whose sizes agree for one batch size": captured(
        _step("(14, 8, 32)", "(14, 32, 8)"), _step("(14, 16, 32)", "(14, 64, 8)")
    ),
}
