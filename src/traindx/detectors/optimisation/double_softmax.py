"""Probabilities are handed to a loss that wants logits."""

from traindx.analysis.program.execution.values import Result, Value
from traindx.analysis.program.training.claims import cite, finding, replace, source_text
from traindx.analysis.program.training.contents import Content, contents
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import program_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

WRONG = {
    "cross_entropy": {Content.PROBABILITIES},
    "binary_cross_entropy_with_logits": {Content.UNIT_INTERVAL, Content.PROBABILITIES},
    "Categorical": {Content.PROBABILITIES},
}


@detector(needs=("source",), suggests=("softmax-before-cross-entropy",))
def check(run: Run) -> Findings:
    """Softmax or sigmoid is applied before a loss that applies it itself.

    ## What it detects
    The input of a cross-entropy (or BCE-with-logits) loss, or the logits of a Categorical
    distribution, followed back through assignments and the model's `forward` to a softmax (or
    sigmoid).

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
    seen: set[object] = set()
    for loss in program_of(run).results(*WRONG):
        is_loss = loss.operation.name != "Categorical"
        given = loss.operation.argument("input" if is_loss else "logits")
        found = list(contents(given)) if given is not None else []
        if not found or any(content not in WRONG[loss.operation.name] for content, _ in found):
            continue
        content, made = found[0]
        if made.site is None or made.site.node in seen:
            continue
        seen.add(made.site.node)
        yield finding(
            f"A {content.value} is applied before {loss.label}, which applies its own",
            "softmax-before-cross-entropy",
            made,
            cite(made, f"{content.value} here"),
            cite(loss.event, f"its result goes into {loss.label} here"),
            is_symptom=True,
            patch=_patch(made),
        )


def _patch(made: Value) -> str | None:
    """Replace a function by its argument."""
    is_function = isinstance(made, Result) and made.receiver is None and made.args
    operation = operation_of(made)
    if not is_function or operation is None or operation.operands[0].site is None:
        return None
    return replace(made, source_text(operation.operands[0]))


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


_ENSEMBLE = "torch.stack([F.{last}(self.fc(x), -1), F.{last}(self.aux(x), -1)]).{over}"


def _ensemble(last: str, over: str = "mean(0)") -> Run:
    text = _ENSEMBLE.format(last=last, over=over)
    program = (
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.fc, self.aux = nn.Linear(4, 3), nn.Linear(4, 3)\n"
        f"    def forward(self, x):\n        return {text}\n"
        "net = Net()\nfor x, y in loader:\n"
        "    F.cross_entropy(net(x), y).backward()\n"
    )
    return make_run(sources={"train.py": program})


FIRES = {
    "the average of an ensemble": _ensemble("softmax"),
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

_DISTILLED = """
from torch import nn

class Distilled(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
    def forward(self, inputs, outputs, labels):
        return self.base(outputs, labels)

criterion = nn.BCEWithLogitsLoss()
if not args.plain:
    criterion = Distilled(criterion)
for x, y in data:
    out = net(x)
    loss = criterion(x, out, y) if not args.plain else criterion(out, out.detach().sigmoid())
    loss.backward()
"""

SILENT = {
    "near miss: the average of logarithms": _ensemble("log_softmax"),
    "near miss: the average over classes": _ensemble("softmax", "mean(-1)"),
    "near miss: soft targets, of a loss that takes two arguments": make_run(
        sources={"t.py": _DISTILLED}
    ),
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
