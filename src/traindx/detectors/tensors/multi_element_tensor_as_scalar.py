from traindx.analysis.errors.call_messages import MANY_VALUES
from traindx.analysis.errors.messages import finding, known_error
from traindx.analysis.errors.written_calls import loss_as_function
from traindx.examples import failed
from traindx.registry import Findings, Run, detector


@detector(needs=("failure",), suggests=("api-misuse",))
def check(run: Run) -> Findings:
    """A tensor of several values is used where a scalar or a condition is needed.

    ## What it detects
    "only one element tensors can be converted to Python scalars", "a Tensor with 2 elements cannot
    be converted to Scalar" and "Boolean value of Tensor with more than one value is ambiguous",
    which a loss class gives too when it is called like a function: `nn.CrossEntropyLoss(out, y)`.

    ## Why it matters
    The message speaks of conversion; the fault is a missing reduction or a missing pair of
    brackets.

    ## What to do
    Reduce first (`.mean().item()`, `.all()`), or make the loss before calling it:
    `nn.CrossEntropyLoss()(out, y)`.

    ## When it is wrong
    It is not: the message is exact. Whether mean, sum or any is meant, only the author knows.
    """
    known = known_error(run, MANY_VALUES)
    if known is None:
        return
    name, culprit = loss_as_function(known) if known.kind == "condition" else ("", None)
    if name:
        claim = f"{name} is a class, and is called with outputs and targets: create it first"
        yield finding(known, claim, culprit=culprit)
    else:
        yield finding(known)


_SOURCE = "from torch import nn\nloss = nn.CrossEntropyLoss(out, y)\n"

FIRES = {
    "a loss class as a function": failed(
        "RuntimeError: Boolean value of Tensor with more than one value is ambiguous",
        "loss = nn.CrossEntropyLoss(out, y)",
        sources={"train.py": _SOURCE},
    ),
    "a condition": failed(
        "RuntimeError: Boolean value of Tensor with more than one value is ambiguous",
        "if preds == labels:",
    ),
    "item of many": failed(
        "RuntimeError: a Tensor with 2 elements cannot be converted to Scalar",
        "total += loss.item()",
    ),
}

SILENT = {
    "near miss: backward of many": failed(
        "RuntimeError: grad can be implicitly created only for scalar outputs"
    ),
    "another error": failed("KeyError: 'label'"),
}
