from dataclasses import replace

from traindx.analysis.steps.linear_models import linear_model
from traindx.analysis.steps.step_graph import steps_of
from traindx.examples import captured, step_of
from traindx.registry import Findings, Run, detector, finding

CAUSE = "missing-nonlinearity"


@detector(needs=("step",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A model of several layers is a linear function of its input: no activation runs.

    ## What it detects
    In the operations of a captured step: two or more layers with weights one after the other, and
    from the inputs to every output of the model nothing but products with weights, sums, means,
    dropout and changes of shape.

    ## Why it matters
    Layers without a nonlinear function between them are one layer. The model cannot learn more than
    a linear regression does, however many weights it has.

    ## What to do
    Put an activation (ReLU, GELU …) between the layers; one that is made and not called, or whose
    result is dropped, does nothing.

    ## When it is wrong
    A narrow layer between two wide ones factors a matrix on purpose (low rank, PCA), and two layers
    of that kind are left alone. So is everything behind an operation that is not known.
    """
    for step in steps_of(run, training=True):
        found = linear_model(step)
        if found is not None:
            first, last = found.layers[0], found.layers[-1]
            yield finding(
                f"{len(found.layers)} layers run without an activation between them: the model is "
                "linear",
                CAUSE,
                step.cite(first, f"`{first.name}` is the first layer"),
                step.cite(last, f"`{last.name}` is the last; between them all is linear"),
                place=last.place,
            )
            return


_STEP = """
x: batch/0 (32, 8)
y: batch/1 (32)
w: parameter:a.weight ({wide}, 8)
v: parameter:b.weight ({classes}, {wide})
h (32, {wide}) = mm(x, w) in a
{lines}
o (32, {classes}) = mm({last}, v) in b
p (32, {classes}) = log_softmax(o)
loss () = nll_loss(p, y)
"""


def _run(lines: str, last: str = "h", wide: int = 64, classes: int = 10) -> Run:
    text = _STEP.format(lines=lines, last=last, wide=wide, classes=classes)
    step = step_of(text)
    output = [t.shape for t in step.tensors].index((32, classes))
    return captured(replace(step, outputs=(output,)))


_THREE = "u: parameter:m.weight (4, 4)\nm (32, 4) = mm(h, u) in m"

FIRES = {
    "one layer on the other": _run(""),
    "dropout between them": _run("d (32, 64) = native_dropout(h)", "d"),
    "three layers, narrow": _run(_THREE, "m", wide=4),
}

SILENT = {
    "an activation": _run("r (32, 64) = relu(h)", "r"),
    "near miss: low rank": _run("", wide=4),
    "near miss: a gate": _run("g (32, 64) = mul(h, h)", "g"),
    "near miss: an operation that is not known": _run("g (32, 64) = fused_thing(h)", "g"),
}
