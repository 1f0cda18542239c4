"""Probabilities are handed to a loss that wants logits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Location, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.losses import losses_in, wants
from traindx.source.outputs import Ending, ending_of
from traindx.source.patches import diff, replacing

WRONG = {"logits": {"softmax"}, "binary-logits": {"sigmoid", "softmax"}}


@detector(needs=("source",), suggests=("softmax-before-cross-entropy",))
def check(run: Run) -> Iterator[Finding]:
    """Softmax or sigmoid is applied before a loss that applies it itself.

    ## What it detects
    The input of a cross-entropy (or BCE-with-logits) loss, followed back through assignments and
    the model's `forward` to a softmax (or sigmoid).

    ## Why it matters
    The loss normalises again. With C classes the loss cannot fall below ln(e + C - 1) - 1 (1.46 for
    ten classes), gradients are small, and training is slow or stalls.

    ## What to do
    Return logits from the model; apply softmax only where probabilities are shown.

    ## When it is wrong
    Log-softmax before cross-entropy is redundant and harmless, and is left alone. Soft targets that
    pass through a softmax are the second argument, which is not looked at. Of several outputs, only
    the one that the loss takes counts; a softmax on a condition is left alone.
    """
    project = project_of(run)
    seen: set[ast.AST] = set()
    for loss in losses_in(project):
        wrong = WRONG.get(wants(loss), set())
        given = loss.input
        if not wrong or given is None:
            continue
        ending = ending_of(project, loss.module, loss.scope, given)
        if ending is None or ending.operation not in wrong or ending.node in seen:
            continue
        seen.add(ending.node)
        line = getattr(ending.node, "lineno", 1)
        last = getattr(ending.node, "end_lineno", None) or line
        yield Finding(
            claim=f"A {ending.operation} is applied before {loss.label}, which applies its own",
            strength=Strength.STRONG,
            evidence=(
                cite_source(ending.module.path, line, f"{ending.operation} here"),
                cite_source(loss.module.path, loss.line, f"its result goes into {loss.label} here"),
            ),
            shows="softmax-before-cross-entropy",
            is_symptom=True,
            location=Location(ending.module.path, line, last),
            patch=_patch(ending),
        )


def _patch(ending: Ending) -> str | None:
    """Replace the call by its argument, where it is a plain call on a tensor."""
    call = ending.node
    if not isinstance(call, ast.Call) or not call.args:
        return None
    name = ending.module.qualified(call.func) or ""
    is_function = name.startswith("torch.") and name.rsplit(".", 1)[-1].islower()
    if not is_function:
        return None
    inner = ast.get_source_segment(ending.module.text, call.args[0])
    return None if inner is None else diff(ending.module, replacing(call, inner))


_MODEL = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)

    def forward(self, x):
        x = self.fc(x)
        return {returned}

model = Net()
criterion = {criterion}
for data, target in loader:
    output = model(data)
    loss = criterion(output, target)
    loss.backward()
"""


def _program(returned: str, criterion: str = "nn.CrossEntropyLoss()") -> Run:
    return make_run(sources={"train.py": _MODEL.format(returned=returned, criterion=criterion)})


_LIGHTNING = """
import lightning as L
import torch.nn.functional as F
from torch import nn

class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        return {returned}

    def training_step(self, batch, index):
        x, y = batch
        scores = self(x)
        return F.cross_entropy(scores, y)
"""


def _lightning(returned: str) -> Run:
    return make_run(sources={"model.py": _LIGHTNING.format(returned=returned)})


_TWO_OUTPUTS = """
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)

    def forward(self, x, as_probabilities=False):
        logits = self.fc(x)
        {returned}

model = Net()
for data, target in loader:
    {taken} = model(data)
    F.cross_entropy({given}, target).backward()
"""
_BOTH = "return F.softmax(logits, dim=1), logits"
_ON_DEMAND = """if as_probabilities:
            logits = F.softmax(logits, dim=1)
        return logits"""


def _two(taken: str, given: str, returned: str = _BOTH) -> Run:
    text = _TWO_OUTPUTS.format(taken=taken, given=given, returned=returned)
    return make_run(sources={"train.py": text})


FIRES = {
    "the first of two outputs": _two("probs, logits", "probs"),
    "the first of two outputs, by its index": _two("out", "out[0]"),
    "through the forward of a Lightning module": _lightning("F.softmax(self.fc(x), dim=1)"),
    "softmax in forward": _program("F.softmax(x, dim=1)"),
    "sigmoid before BCE with logits": _program("torch.sigmoid(x)", "nn.BCEWithLogitsLoss()"),
    "a Sequential that ends in Softmax": make_run(
        sources={
            "t.py": "from torch import nn\n"
            "net = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))\n"
            "for x, y in data:\n"
            "    nn.functional.cross_entropy(net(x), y).backward()\n"
        }
    ),
}

SILENT = {
    "near miss: the second of two outputs": _two("probs, logits", "logits"),
    "near miss: the last of two outputs, by its index": _two("out", "out[-1]"),
    "near miss: softmax only on demand": _two("out", "out", _ON_DEMAND),
    "near miss: the layer below the sigmoid": make_run(
        sources={
            "train.py": """
from torch import nn

class Confidence(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())
        self.loss_fn = nn.BCEWithLogitsLoss()

    def loss(self, x, y):
        return self.loss_fn(self.token[0](x).squeeze(-1), y)
"""
        }
    ),
    "logits of a Lightning module": _lightning("self.fc(x)"),
    "logits": _program("x"),
    "near miss: log-softmax with NLL": _program("F.log_softmax(x, dim=1)", "nn.NLLLoss()"),
    "near miss: sigmoid with BCELoss": _program("torch.sigmoid(x)", "nn.BCELoss()"),
    "redundant but harmless": _program("F.log_softmax(x, dim=1)"),
}
