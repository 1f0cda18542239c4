from traindx.analysis.errors.call_messages import STRIDED_VIEW
from traindx.analysis.errors.messages import finding, known_error
from traindx.analysis.errors.written_calls import strided_view
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("non-contiguous-view",))
def check(run: Run) -> Findings:
    """`view` is called on a tensor that is not contiguous.

    ## What it detects
    "view size is not compatible with input tensor's size and stride", and the `.view` on the line
    of the user's own code that raised it.

    ## Why it matters
    After `transpose`, `permute` or a slice the elements are no longer in the order that `view`
    needs; it cannot copy, `reshape` can.

    ## What to do
    Use `.reshape(…)` in its place, after checking that the order of the axes is the one you mean.

    ## When it is wrong
    A view that merges transposed dimensions may mix what should stay apart; then the permutation
    is wrong, and `reshape` would hide it.
    """
    known = known_error(run, STRIDED_VIEW)
    if known is None:
        return
    call = strided_view(known)
    if call is None:
        yield finding(known)
        return
    says = "a transpose, permute or slice precedes this view; reshape copies where needed"
    claim = known.claim(view=f".view({', '.join(call.arguments)})")
    yield finding(known, claim, culprit=call.blamed(says, call.with_method("reshape")))


_MODEL = """
from torch import nn

class Heads(nn.Module):
    def forward(self, x):
        b, t, h, d = x.shape
        x = x.transpose(1, 2)  # heads first
        return x.view(b, h, t * d)
"""
_ERROR = (
    "RuntimeError: view size is not compatible with input tensor's size and stride (at least one "
    "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
)

FIRES = {
    "with the source": failed(_ERROR, "return x.view(b, h, t * d)", sources={"model.py": _MODEL}),
    "the message alone": failed(_ERROR),
}

SILENT = {
    "near miss: a view of another size": failed(
        "RuntimeError: shape '[32, 400]' is invalid for input of size 57600"
    ),
    "another error": failed("RuntimeError: CUDA out of memory."),
}
