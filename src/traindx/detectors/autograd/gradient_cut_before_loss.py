from traindx.analysis.steps.gradient_cuts import GradientCut, cut_parameters, cuts, owners_of
from traindx.analysis.steps.step_graph import steps_of
from traindx.examples import captured, step_of
from traindx.registry import Findings, Run, detector, finding

DETACHED = "detached-loss"
STEPPED = "non-differentiable-operation"
SWITCHED_OFF = "no-grad-training"
SHOWN = 4  # names of parameters in a sentence


@detector(needs=("step",), suggests=(DETACHED, STEPPED, SWITCHED_OFF))
def check(run: Run) -> Findings:
    """A loss depends on trainable parameters, and no gradient can reach them.

    ## What it detects
    In the operations of captured steps: parameters that the loss was computed from, and on every
    way to them an operation behind which nothing needs a gradient: `detach`, a rounding or an
    argmax, or anything computed while gradients were off.

    ## Why it matters
    The parameters keep their values. The rest of the model trains around them, or the loss does
    not fall at all.

    ## What to do
    Take the cut away, or put a differentiable operation in its place.

    ## When it is wrong
    Teachers, target networks and frozen parts need no gradient and are left alone, and so is
    what another loss of the same step teaches, or another optimizer holds. A stop-gradient beside
    a live way cuts nothing.
    """
    steps = list(steps_of(run, training=True))
    lost = cut_parameters(steps, owners_of(run))
    for step in steps if lost else ():
        for cut in cuts(step, lost):
            names = sorted(n.label for n in cut.parameters)
            shown = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
            says = f"the gradient of {shown} ends at `{cut.act.name}`"
            yield finding(_claim(cut), _cause(cut), step.cite(cut.act, says), place=cut.act.place)
            return


def _cause(cut: GradientCut) -> str:
    if cut.is_detached:
        return DETACHED
    if cut.is_without_grad:
        return SWITCHED_OFF
    return STEPPED if cut.is_stepped else DETACHED


def _claim(cut: GradientCut) -> str:
    what = f"{len(cut.parameters)} parameters the loss depends on"
    if cut.is_detached:
        return f"`detach` cuts {what} off from it"
    if cut.is_without_grad:
        return f"{what[0].upper()}{what[1:]} are used with gradients switched off"
    if cut.is_stepped:
        return f"`{cut.act.name}` has no gradient and cuts {what} off"
    return f"`{cut.act.name}` cuts {what} off from it"


_STEP = """
x: batch/0 (32, 8)
y: batch/1 (32, 4)
w: parameter:encoder.weight (4, 8)
v: parameter:head.weight (4, 4)
h (32, 4) = mm(x, w) in encoder
c (32, 4) = {cut}(h) @ 30
o (32, 4) = mm(c, v) in head
d (32, 4) = sub(o, y)
loss () = mean(d)
"""
_TWO_WAYS = _STEP.replace("o (32, 4) = mm(c, v) in head", "s (32, 4) = add(h, c)\n"
                          "o (32, 4) = mm(s, v) in head")  # fmt: skip

FIRES = {
    "detach between encoder and head": captured(step_of(_STEP.format(cut="detach"))),
    "rounding": captured(step_of(_STEP.format(cut="round"))),
    "computed without gradients": captured(
        step_of(_STEP.format(cut="relu"), c={"needs_grad": False})
    ),
}

SILENT = {
    "a differentiable operation": captured(step_of(_STEP.format(cut="relu"))),
    "near miss: straight-through beside a live way": captured(
        step_of(_TWO_WAYS.format(cut="round"))
    ),
    "near miss: a frozen encoder": captured(
        step_of(_STEP.format(cut="detach"), w={"needs_grad": False})
    ),
    "near miss: another step teaches it": captured(
        step_of(_STEP.format(cut="detach")), step_of(_STEP.format(cut="relu"))
    ),
}
