from traindx.analysis.errors.class_blame import returned_by
from traindx.analysis.errors.graph_messages import CUSTOM_GRADIENT
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("incorrect-custom-backward",))
def check(run: Run) -> Findings:
    """The backward of a custom function returns too few, too many or misshapen gradients.

    ## What it detects
    "returned an incorrect number of gradients (expected 2, got 1)" and "returned an invalid
    gradient at index 0 - got [3] but expected shape compatible with [2]".

    ## Why it matters
    `backward` has to return one gradient per argument of `forward`, in its shape.

    ## What to do
    Return None for arguments that need no gradient, sum over broadcast dimensions, and test with
    `torch.autograd.gradcheck` in float64.

    ## When it is wrong
    An invalid gradient of a built-in function (its name ends with Backward0) points at inputs of
    odd device, type or shape rather than at a function of yours.
    """
    known = known_error(run, CUSTOM_GRADIENT)
    if known is not None:
        name = f"{known['name']}.backward"
        yield finding(known, culprit=returned_by(run, name, f"{name} returns this"))


_SOURCE = """
import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        return x * factor
    @staticmethod
    def backward(ctx, grad):
        return grad
"""
_ERROR = (
    "RuntimeError: function ScaleBackward returned an incorrect number of gradients (expected 2, "
    "got 1)"
)

FIRES = {
    "too few": failed(_ERROR, "loss.backward()", sources={"ops.py": _SOURCE}),
    "wrong shape": failed(
        "RuntimeError: Function ScaleBackward returned an invalid gradient at index 0 - got [3] "
        "but expected shape compatible with [2]"
    ),
}

SILENT = {
    "near miss: NaN in backward": failed(
        "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output."
    ),
    "another error": failed("RuntimeError: CUDA out of memory."),
}
