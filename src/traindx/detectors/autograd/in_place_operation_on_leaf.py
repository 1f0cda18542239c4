from traindx.analysis.errors.graph_blame import leaf_change
from traindx.analysis.errors.graph_messages import LEAF_CHANGED_IN_PLACE
from traindx.analysis.errors.messages import findings
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("in-place-modification",))
def check(run: Run) -> Findings:
    """A parameter is changed in place outside of `no_grad`.

    ## What it detects
    "a leaf Variable that requires grad is being used in an in-place operation", also for a view
    (`weight[0] = …`) of one.

    ## Why it matters
    Autograd cannot both record the change and keep the parameter as the place where the gradient
    is collected, so it refuses.

    ## What to do
    Initialise and update parameters under `torch.no_grad()`; if the change is a part of the
    model, compute a new tensor from the parameter instead.

    ## When it is wrong
    The message is always right; which of the two is meant, only the author knows.
    """
    yield from findings(run, LEAF_CHANGED_IN_PLACE, blame=leaf_change)


_ERROR = "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation."
_SOURCE = """
import torch
w = torch.zeros(3, requires_grad=True)
for x in data:
    (w * x).sum().backward()
    w -= 0.1 * w.grad
"""

FIRES = {
    "an update by hand": failed(_ERROR, "w -= 0.1 * w.grad", sources={"t.py": _SOURCE}),
    "an element of a weight": failed(
        "RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place "
        "operation.",
        "model.fc.weight[0] = 1.0",
    ),
}

SILENT = {
    "near miss: a tensor inside of the graph": failed(
        "RuntimeError: one of the variables needed for gradient computation has been modified by "
        "an inplace operation"
    ),
    "another error": failed("RuntimeError: CUDA out of memory."),
}
