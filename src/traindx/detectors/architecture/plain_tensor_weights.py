from dataclasses import replace

from traindx.analysis.steps.axes import batch_size
from traindx.analysis.steps.step_graph import steps_of
from traindx.analysis.steps.stray_weights import first_use, stray_weights
from traindx.examples import Optimizer, captured, recorded, step_of
from traindx.registry import Findings, Run, detector, finding

CAUSE = "unregistered-submodules"


@detector(needs=("step",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """The loss gives a gradient to a tensor that is in no module and in no optimizer.

    ## What it detects
    In the operations of a captured step: a tensor with `requires_grad` that was there before the
    step, that the loss can teach, and that no model and no optimizer holds.

    ## Why it matters
    `parameters()`, `to()` and `state_dict()` do not see it: it is neither trained nor saved.

    ## What to do
    Wrap it: `self.scale = nn.Parameter(torch.randn(…))`; layers go into `nn.ModuleList`.

    ## When it is wrong
    Inputs that are differentiated, as for a saliency map, belong to the batch and are left alone.
    A run whose optimizer holds tensors of no module says nothing.
    """
    processes = run.recording.processes if run.recording is not None else ()
    if any(o.strangers for p in processes for o in p.optimizers):
        return
    for step in steps_of(run, training=True):
        size = batch_size(step)
        for node in stray_weights(step):
            act = first_use(node)
            if act is None or size is None or node.shape[0] == size:
                continue
            says = f"a tensor {node.shape} with requires_grad that no module and no optimizer holds"
            claim = f"A weight of shape {node.shape} is in no module and in no optimizer"
            yield finding(claim, CAUSE, step.cite(act, says), onset=0.0, place=act.place)
            return


_STEP = """
x: batch/0 (32, 8)
y: batch/1 (32)
s: outside {shape}
w: parameter:fc.weight (10, 8)
{line}
o (32, 10) = mm(h, w) in fc
p (32, 10) = log_softmax(o)
loss () = nll_loss(p, y)
"""


def _run(line: str = "h (32, 8) = mul(x, s)", shape: str = "(8)", *, has_grad: bool = True) -> Run:
    return captured(step_of(_STEP.format(line=line, shape=shape), s={"needs_grad": has_grad}))


def _held() -> Run:
    recording = _run().recording
    assert recording is not None
    return recorded(replace(recording.processes[0], optimizers=(Optimizer(1, strangers=1),)))


FIRES = {
    "a scale": _run(),
    "a layer by hand": _run("h (32, 8) = mm(x, s)", "(8, 8)"),
    "a token that is put in front": _run("e (1, 8) = expand(s)\nh (33, 8) = cat(e, x)", "(1, 8)"),
}

SILENT = {
    "a constant": _run(has_grad=False),
    "near miss: the optimizer holds plain tensors": _held(),
    "near miss: inputs that are differentiated": _run(shape="(32, 8)"),
    "near miss: it is not used for the loss": _run("q (32, 8) = mul(x, s)\nh (32, 8) = relu(x)"),
}
