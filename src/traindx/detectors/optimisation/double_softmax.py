from dataclasses import replace as replaced

from traindx.analysis.program.execution.values import Result, Value
from traindx.analysis.program.training.claims import (
    argument_of,
    finding,
    program_of,
    receiver_of,
    replace,
    source_text,
)
from traindx.analysis.program.training.contents import IN_UNIT_INTERVAL, Content, contents
from traindx.analysis.program.training.operations import name_of_operation
from traindx.examples import script, template
from traindx.registry import Findings, Run, Strength, detector

WRONG = {
    "cross_entropy": {Content.PROBABILITIES, Content.UNIT_INTERVAL},
    "binary_cross_entropy_with_logits": IN_UNIT_INTERVAL,
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
        shown = finding(
            f"A {content.value} is applied before {loss.label}, which applies its own",
            (made, f"{content.value} here"),
            (loss.event, f"its result goes into {loss.label} here"),
            patch=_patch(made),
        )
        if name_of_operation(made) == "div":  # written by hand: its danger goes when it goes
            shown = replaced(shown, against={"unstable-operation": Strength.STRONG})
        yield shown


def _patch(made: Value) -> str | None:
    """Replace a function, or a method, by what it is given."""
    is_one = isinstance(made, Result) and name_of_operation(made) in ("softmax", "sigmoid")
    if not is_one or not isinstance(made, Result) or made.maker == "()":
        return None  # of a layer, the call may be that of a chain which ends in it
    given = argument_of(made) if made.receiver is None else receiver_of(made)
    return None if given is None else replace(made, source_text(given))


_program = template("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.aux = nn.Linear(784, 10), nn.Linear(10, 10)

    def forward(self, x):
        x = self.fc(x)
        return {returned}

model = Net()
criterion = {criterion:nn.CrossEntropyLoss()}
for data, target in loader:
    output = model(data)
    loss = criterion(output, target)
    loss.backward()
""")

_lightning = template("""
import lightning as L

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
""")

_TWO_OUTPUTS = """
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

_two = template(_TWO_OUTPUTS, "taken", "given", returned=_BOTH)

_ENSEMBLE = "torch.stack([F.{last}(x, -1), F.{last}(self.aux(x), -1)]).{over}"


def _ensemble(last: str, over: str = "mean(0)") -> Run:
    return _program(_ENSEMBLE.format(last=last, over=over))


FIRES = {
    "the average of an ensemble": _ensemble("softmax"),
    "the first of two outputs": _two("probs, logits", "probs"),
    "the first of two outputs, by its index": _two("out", "out[0]"),
    "through the forward of a Lightning module": _lightning("F.softmax(self.fc(x), dim=1)"),
    "softmax in forward": _program("F.softmax(x, dim=1)"),
    "sigmoid before cross-entropy": _program("self.aux(x).sigmoid()"),
    "attention over frames": _program(
        "(x.softmax(-1) * self.aux(x).sigmoid()).sum(-1)", "nn.BCEWithLogitsLoss()"
    ),
    "the highest of many": _program("torch.sigmoid(x).amax(1)", "nn.BCEWithLogitsLoss()"),
    "sigmoid before BCE with logits": _program("torch.sigmoid(x)", "nn.BCEWithLogitsLoss()"),
    "a Sequential that ends in Softmax": script(
        "net = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))\n"
        "for x, y in data:\n"
        "    nn.functional.cross_entropy(net(x), y).backward()\n"
    ),
}

SILENT = {
    "near miss: the average of logarithms": _ensemble("log_softmax"),
    "near miss: the average over classes": _ensemble("softmax", "mean(-1)"),
    "near miss: soft targets, of a loss that takes two arguments": script("""
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
"""),
    "near miss: the second of two outputs": _two("probs, logits", "logits"),
    "near miss: the last of two outputs, by its index": _two("out", "out[-1]"),
    "near miss: softmax only on demand": _two("out", "out", _ON_DEMAND),
    "near miss: the layer below the sigmoid": script("""
class Confidence(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())
        self.loss_fn = nn.BCEWithLogitsLoss()

    def loss(self, x, y):
        return self.loss_fn(self.token[0](x).squeeze(-1), y)
"""),
    "near miss: attention over scores": _program(
        "(x.softmax(-1) * self.aux(x)).sum(-1)", "nn.BCEWithLogitsLoss()"
    ),
    "near miss: a gate": _program("self.aux(x) * torch.sigmoid(x)", "nn.BCEWithLogitsLoss()"),
    "logits of a Lightning module": _lightning("self.fc(x)"),
    "logits": _program("x"),
    "near miss: log-softmax with NLL": _program("F.log_softmax(x, dim=1)", "nn.NLLLoss()"),
    "near miss: sigmoid with BCELoss": _program("torch.sigmoid(x)", "nn.BCELoss()"),
    "redundant but harmless": _program("F.log_softmax(x, dim=1)"),
}
