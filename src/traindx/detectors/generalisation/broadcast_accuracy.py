"""Predictions and labels of different shapes are compared: every one with every other."""

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.truth import is_none
from traindx.analysis.program.execution.values import Items, Value, constant
from traindx.analysis.program.training.claims import cite, finding, source_text
from traindx.analysis.program.training.operations import LOSSES, Operation, operation_of
from traindx.analysis.program.training.pairing import paired_metrics
from traindx.analysis.program.training.program import Story, program_of
from traindx.examples import make_run
from traindx.registry import Findings, Run, detector

# what leaves the shape of a tensor as it is
ELEMENTWISE = frozenset(
    {"gt", "ge", "lt", "le", "long", "int", "float", "double", "bool", "round", "sigmoid", "to",
     "detach", "cpu", "cuda", "type", "clone", "tanh", "exp", "half", "sub", "neg"}
)  # fmt: skip
WITH_OTHER = frozenset({"gt", "ge", "lt", "le", "sub"})


@detector(needs=("source",), suggests=("metric-bug",))
def check(run: Run) -> Findings:
    """Accuracy compares a column of predictions with a row of labels.

    ## What it detects
    A loss over an output and labels that were given another dimension (`unsqueeze(1)`,
    `view(-1, 1)`, `[:, None]`), and a comparison of the predictions of the same output with the
    same labels as they are. And any difference or comparison of a column of outputs with a row of
    targets of the same batch that no backward pass depends on, where both shapes are in sight.

    ## Why it matters
    Shapes (B, 1) and (B,) broadcast to a matrix of B times B: every prediction is compared with
    every label, and the accuracy says how common the classes are.

    ## What to do
    Compare with the labels that the loss gets, or drop the dimension of the output: `squeeze(1)`.

    ## When it is wrong
    Outputs that are reshaped before the comparison are left alone.
    """
    seen: set[object] = set()
    for story in program_of(run).stories:
        for pair in paired_metrics(story):
            if pair.site is not None and pair.site.node not in seen:
                seen.add(pair.site.node)
                yield finding(
                    "A metric compares predictions of shape (N, 1) with targets of shape (N)",
                    "metric-bug",
                    pair,
                    cite(pair, f"`{source_text(pair)}` broadcasts to N times N"),
                    is_symptom=True,
                )
        columns = _columns(story)
        for event in story.events if columns else ():
            operation = operation_of(event.result)
            if operation is None or operation.name not in ("eq", "ne") or event.node in seen:
                continue
            sides = {id(_source(v)) for v in operation.operands[:2]}
            loss = next((e for o, y, e in columns if sides == {id(o), id(y)}), None)
            if loss is not None:
                seen.add(event.node)
                yield finding(
                    "Accuracy compares predictions of shape (B, 1) with labels of shape (B,)",
                    "metric-bug",
                    event,
                    cite(event, f"`{source_text(event)}` broadcasts to B times B"),
                    cite(loss, "the loss gets the labels with another dimension"),
                    is_symptom=True,
                )


def _columns(story: Story) -> list[tuple[Value, Value, ProgramEvent]]:
    """The outputs and labels of losses for which the labels got another dimension."""
    found = []
    for event in story.events:
        operation = operation_of(event.result)
        if operation is None or operation.name not in LOSSES or len(operation.operands) < 2:
            continue
        target = _source(operation.operands[1])
        reshaped = operation_of(target)
        if reshaped is not None and _adds_dimension(reshaped):
            found.append((_source(operation.operands[0]), _source(reshaped.operands[0]), event))
    return found


def _adds_dimension(operation: Operation) -> bool:
    """`y.unsqueeze(1)`, `y.view(-1, 1)`, `y[:, None]`: a column."""
    given = [constant(v) for v in operation.operands[1:]]
    if operation.name == "unsqueeze":
        return given in ([1], [-1])
    if operation.name == "getitem" and isinstance(operation.operands[1], Items):
        last = operation.operands[1].members[-1]
        return len(operation.operands[1].members) == 2 and is_none(last) is True
    return operation.name in ("view", "reshape") and given == [-1, 1]


def _source(value: Value) -> Value:
    """Return what a value was made from without changing its shape."""
    operation = operation_of(value)
    while operation is not None and operation.name in ELEMENTWISE and operation.operands:
        other = operation.operands[1] if operation.name in WITH_OTHER else None
        if other is not None and not isinstance(constant(other), (int, float)):
            return value
        value = operation.operands[0]
        operation = operation_of(value)
    return value


_LOOP = """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
for x, y in val_loader:
    out = net(x)
    loss = nn.functional.binary_cross_entropy_with_logits(out, {target})
    hits = {hits}
    print(loss, hits.float().mean())
"""


def _loop(hits: str, target: str = "y.float().unsqueeze(1)") -> Run:
    return make_run(sources={"train.py": _LOOP.format(hits=hits, target=target)})


_SCORES = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

X, y = torch.randn(500, 6), torch.randn(500)
train, test = random_split(TensorDataset(X, y), [400, 100])
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))

@torch.no_grad()
def score():
    given, wanted = [], []
    for xb, yb in DataLoader(test, 50):
        given.append(net(xb){squeeze})
        wanted.append(yb)
    given, wanted = torch.cat(given), torch.cat(wanted)
    return (given - wanted).abs().mean()

print(score())
"""

_STEP = """
import torch
from torch import nn

class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.loss = nn.Linear(8, 1), nn.BCEWithLogitsLoss()

    def score(self, batch):
        x, label = batch
        logit = self.body(x)
        loss = self.loss(logit, label.view(-1, 1).float())
        guess = torch.round(torch.sigmoid(logit))
        return loss, torch.eq(guess, label).float().mean()
"""

FIRES = {
    "an error over the whole test set": make_run(sources={"train.py": _SCORES.format(squeeze="")}),
    "a threshold": _loop("(out > 0).long() == y"),
    "a column by its index": _loop("y.eq(out.sigmoid().round())", "y[:, None].float()"),
    "rounded, as functions": make_run(sources={"judge.py": _STEP}),
}

SILENT = {
    "near miss: an error over the whole test set, squeezed": make_run(
        sources={"train.py": _SCORES.format(squeeze=".squeeze(1)")}
    ),
    "the same labels": _loop("(out > 0).long() == y.unsqueeze(1)"),
    "near miss: the dimension is dropped": _loop("(out.squeeze(1) > 0).long() == y"),
    "near miss: flattened": _loop("(out > 0).flatten() == y"),
    "near miss: labels that are columns already": _loop("(out > 0).long() == y", "y.float()"),
}
