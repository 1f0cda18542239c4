from traindx.analysis.errors.culprits import explain
from traindx.analysis.errors.other_frameworks import read_other
from traindx.analysis.errors.root_failure import root_failure
from traindx.analysis.errors.shape_messages import read
from traindx.analysis.errors.size_blame import size_culprit
from traindx.examples import failed
from traindx.registry import Evidence, Findings, Run, detector

CAUSES = {"stack-channels": "channel-mismatch"}


@detector(needs=("failure",), suggests=("shape-mismatch", "channel-mismatch"))
def check(run: Run) -> Findings:
    """Tensor sizes do not match in one operation.

    ## What it detects
    Errors of sums, concatenations, views, batches and losses: "The size of tensor a (10) must match
    the size of tensor b (5)", "shape '[32, 400]' is invalid for input of size 57600", "stack
    expects each tensor to be equal size", "Expected input batch_size (324) to match target
    batch_size (4)".
    Every number is explained; with the source, the line at which the size went wrong.

    ## Why it matters
    The error is raised where two sizes meet; the wrong one was made earlier.

    ## What to do
    Follow the size that the evidence names to the line that made it.

    ## When it is wrong
    Which of two sizes is the wrong one, the message does not say.
    """
    failure = root_failure(run)
    said = failure.message if failure is not None else ""
    error = read(said) or read_other(said)
    if failure is None or error is None:
        return
    culprit, more = size_culprit(run, failure, error)
    notes = [Evidence(error.hint, failure.artifact, failure.locator)] if error.hint else []
    cause = CAUSES.get(error.kind, "shape-mismatch")
    yield explain(run, failure, error.claim, shows=cause, culprit=culprit, notes=[*notes, *more])


_MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3)
        self.fc = nn.Linear(400, 10)

    def forward(self, x):
        x = self.conv(x)
        x = x.view(-1, 400)
        return self.fc(x)
"""

FIRES = {
    "a sum": failed(
        "RuntimeError: The size of tensor a (10) must match the size of tensor b (5) at "
        "non-singleton dimension 1"
    ),
    "a join of odd sizes": failed(
        "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 32 but got "
        "size 31 for tensor number 1 in the list."
    ),
    "grey images among others": failed(
        "RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 224] at entry "
        "0 and [1, 224, 224] at entry 1"
    ),
    "a view that eats the batch": failed(
        "ValueError: Expected input batch_size (36) to match target batch_size (4).",
        "loss = criterion(model(x), y)",
        sources={"model.py": _MODEL},
    ),
    "an input that a layer of Keras is not built for": failed(
        'ValueError: Input 0 of layer "sequential" is incompatible with the layer: expected shape='
        "(None, 1, 4), found shape=(None, 1, 34)",
        "model.fit(x, y)",
    ),
    "a product of JAX": failed(
        "TypeError: dot_general requires contracting dimensions to have the same shape, got (1,) "
        "and (15,)."
    ),
    "a target without the last dimension": failed(
        "ValueError: Target size (torch.Size([64])) must be the same as input size "
        "(torch.Size([64, 1]))"
    ),
}

SILENT = {
    "near miss: an index": failed(
        "IndexError: index 10 is out of bounds for dimension 0 with size 10"
    ),
    "another error": failed("RuntimeError: CUDA out of memory."),
}
