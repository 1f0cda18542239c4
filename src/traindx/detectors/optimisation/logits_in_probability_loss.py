"""Logits are handed to a loss that wants probabilities."""

from __future__ import annotations

from collections.abc import Iterator

from traindx.evidence import Finding, Location, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.losses import losses_in, wants
from traindx.source.outputs import ending_of

WRONG = {
    "probabilities": {"linear", "convolution", "relu", "tanh", "log_softmax"},
    "log-probabilities": {"linear", "convolution", "relu", "softmax", "sigmoid"},
}


@detector(needs=("source",), suggests=("loss-expects-probabilities",))
def check(run: Run) -> Iterator[Finding]:
    """Raw outputs are handed to a loss that wants probabilities or their logarithms.

    ## What it detects
    The input of BCELoss or NLLLoss, followed back through assignments and the model's `forward` to
    a layer or activation that does not give (log-)probabilities.

    ## Why it matters
    BCELoss fails or clamps outside [0, 1]; NLLLoss of logits has no minimum: the loss goes below
    zero without end while nothing useful is learnt.

    ## What to do
    Use the loss that takes logits (BCEWithLogitsLoss, CrossEntropyLoss): it is also more stable.

    ## When it is wrong
    An activation applied out of sight, as in a library model, is not followed; then nothing is
    said.
    """
    project = project_of(run)
    for loss in losses_in(project):
        wrong = WRONG.get(wants(loss), set())
        if not wrong or loss.input is None:
            continue
        ending = ending_of(project, loss.module, loss.scope, loss.input)
        if ending is None or ending.operation not in wrong:
            continue
        line = getattr(ending.node, "lineno", 1)
        wanted = wants(loss).replace("-", " ")
        yield Finding(
            claim=f"The {loss.label} wants {wanted} and is given the output of {ending.operation}",
            strength=Strength.STRONG,
            evidence=(
                cite_source(loss.module.path, loss.line, f"{loss.label} is computed here"),
                cite_source(ending.module.path, line, f"its input ends with {ending.operation}"),
            ),
            shows="loss-expects-probabilities",
            is_symptom=True,
            location=Location(loss.module.path, loss.line, loss.line),
        )


_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return {returned}

model = Net()
criterion = nn.{criterion}()
for data, target in loader:
    loss = criterion(model(data).squeeze(1), target)
    loss.backward()
"""


def _program(returned: str, criterion: str) -> Run:
    return make_run(sources={"train.py": _MODEL.format(returned=returned, criterion=criterion)})


FIRES = {
    "logits into BCELoss": _program("self.body(x)", "BCELoss"),
    "logits into NLLLoss": _program("self.body(x)", "NLLLoss"),
    "probabilities into NLLLoss": _program("F.softmax(self.body(x), dim=1)", "NLLLoss"),
}

SILENT = {
    "near miss: sigmoid before BCELoss": _program("torch.sigmoid(self.body(x))", "BCELoss"),
    "log-softmax before NLLLoss": _program("F.log_softmax(self.body(x), dim=1)", "NLLLoss"),
    "logits where they belong": _program("self.body(x)", "BCEWithLogitsLoss"),
}
