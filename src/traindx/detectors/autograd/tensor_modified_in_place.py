from traindx.analysis.errors.graph_blame import overwriting
from traindx.analysis.errors.graph_messages import OVERWRITTEN_TENSOR
from traindx.analysis.errors.messages import finding, known_error
from traindx.examples import failed, script
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("in-place-modification",))
def check(run: Run) -> Findings:
    """Backward fails because a tensor that it needs was modified in place.

    ## What it detects
    "one of the variables needed for gradient computation has been modified by an inplace
    operation", with the operation that made the tensor, its shape and both versions. With the
    source, the statement that changed it: `x *= mask`, `x[i] = v`, `x.add_(y)`, `inplace=True`, or
    an optimizer step between a forward pass and its backward pass.

    ## Why it matters
    The traceback ends at `backward()`, far from the line at fault, and names the operation that
    made the tensor, not the one that changed it.

    ## What to do
    Write that one change out of place: `x = x * mask`. If an optimizer step lies between, run the
    forward pass again after the step.

    ## When it is wrong
    Without the source only the tensor is known; which line changed it is then for you to find.
    """
    known = known_error(run, OVERWRITTEN_TENSOR)
    if known is None:
        return
    operation = known["operation"]
    count = known.number("now") - known.number("then") if known["now"] else 0
    is_leaf = bool(known["shape"]) and not operation
    yield finding(
        known,
        known.claim(times="once" if count == 1 else f"{count} times"),
        culprit=overwriting(run, operation, is_leaf=is_leaf),
    )


_ERROR = (
    "RuntimeError: one of the variables needed for gradient computation has been modified by an "
    "inplace operation: [torch.FloatTensor [256, 128]], which is output 0 of ReluBackward0, is at "
    "version 2; expected version 1 instead. Hint: enable anomaly detection."
)
_MODEL = """
class Net(nn.Module):
    def forward(self, x):
        x = torch.relu(self.fc1(x))
        if self.training:
            x *= torch.rand_like(x) > 0.5  # dropout by hand
        return self.fc2(x)
"""

FIRES = {
    "the message alone": failed(_ERROR, "loss.backward()"),
    "with the source": failed(_ERROR, sources={"model.py": _MODEL}),
}

SILENT = {
    "near miss: another error of backward": failed(
        "RuntimeError: Trying to backward through the graph a second time", "loss.backward()"
    ),
    "the same code without an error": script(_MODEL),
}
