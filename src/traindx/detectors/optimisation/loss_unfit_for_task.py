"""The loss does not fit what the model puts out or what the labels are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from traindx.evidence import Finding, Strength
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import project_of
from traindx.source.columns import Output, output_of
from traindx.source.loaders import loaders_in, resolve
from traindx.source.losses import LossCall, losses_in, wants
from traindx.source.module import key_of
from traindx.source.project import Project

CLASSIFICATION = frozenset(
    {"MNIST", "FashionMNIST", "KMNIST", "QMNIST", "CIFAR10", "CIFAR100", "ImageFolder", "SVHN",
     "STL10", "ImageNet", "Food101", "DatasetFolder"}
)  # fmt: skip


# what makes one row of a sample, or takes nothing else
ONE_ROW = re.compile(
    r"flatten|view\(|reshape|squeeze|pool|conv|BatchNorm1d|LSTM|GRU|\[:, |\.mean\(|\.sum\(",
    re.IGNORECASE,
)
TABLES = re.compile(r"\bpandas\b|sklearn\.datasets|\bTensorDataset\b")  # data of one row per sample


@detector(needs=("source",), suggests=("wrong-loss-for-task",))
def check(run: Run) -> Iterator[Finding]:
    """Cross-entropy over a single output, or a regression loss on class labels.

    ## What it detects
    Cross-entropy whose input is the output of a linear layer with one unit, in its own shape; and a
    squared or absolute error between several outputs and the labels of a classification dataset.

    ## Why it matters
    Over one class the softmax is always 1 and the loss always 0: nothing is learnt. Squared error
    treats class numbers as amounts, so class 9 is "further" from 1 than class 2 is.

    ## What to do
    One output: BCEWithLogitsLoss. Several classes: one unit per class and CrossEntropyLoss.

    ## When it is wrong
    Scores of several candidates, one unit each, are softmaxed over the candidates; an output whose
    shape changes on the way is left alone, and so is a model that may be applied to each of several
    rows of a sample, where nothing in the code tells that there is one. So are labels that pass
    through one-hot encoding.
    """
    project = project_of(run)
    for loss in losses_in(project):
        if loss.input is None:
            continue
        output = output_of(project, loss.module, loss.scope, loss.input)
        if output is None:
            continue
        if wants(loss) == "logits" and output.units == 1:
            if not _is_one_row(project, loss, output):
                continue
            why = f"{loss.label} over a single output is always 0"
        elif wants(loss) == "same-shape" and output.units > 1 and _are_classes(project, loss):
            why = f"{loss.label} between {output.units} outputs and class labels"
        else:
            continue
        yield Finding(
            claim=f"The loss does not fit the task: {why}",
            strength=Strength.STRONG,
            evidence=(
                loss.module.cite(loss.call, "the loss is computed here"),
                output.module.cite(output.layer, f"{output.units} output units"),
            ),
            shows="wrong-loss-for-task",
            is_symptom=True,
            location=loss.module.location(loss.call),
        )


def _is_one_row(project: Project, loss: LossCall, output: Output) -> bool:
    """Tell whether a model gives one score per sample, and not one for each of its candidates.

    Linear layers take rows of any number: (B, K, features) becomes (B, K, 1), K candidates.
    """
    module = output.module
    around = module.class_of(output.layer) or module.statement_of(output.layer) or output.layer
    if ONE_ROW.search(ast.unparse(around)):
        return True
    if loss.target is not None and ".float()" in ast.unparse(loss.target):
        return True
    return any(TABLES.search(m.text) for m in project.modules)


def _are_classes(project: Project, loss: LossCall) -> bool:
    """Tell whether the target is the label that a classification dataset gives, as it is."""
    module, target = loss.module, loss.target
    key = key_of(target) if isinstance(target, ast.Name) else None
    for above in module.enclosing(loss.call):
        if not isinstance(above, ast.For) or key is None:
            continue
        names = [n.id for n in ast.walk(above.target) if isinstance(n, ast.Name)]
        if names[-1:] != [key] or len(names) < 2 or _is_rebound(above, key):
            return False
        held = [key_of(n) for n in ast.walk(above.iter)]
        for loader in loaders_in(project):
            if loader.module is module and loader.name and loader.name in held:
                made = resolve(project, module, loader.scope, loader.dataset)
                name = module.qualified(made.func) if isinstance(made, ast.Call) else None
                plain = isinstance(made, ast.Call) and "target_transform" not in ast.unparse(made)
                return plain and (name or "").rsplit(".", 1)[-1] in CLASSIFICATION
    return False


def _is_rebound(loop: ast.For, key: str) -> bool:
    """A move to the device leaves labels labels; anything else may make them something else."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and key in {
            key_of(n) for t in node.targets for n in ast.walk(t)
        }:
            methods = {n.attr for n in ast.walk(node.value) if isinstance(n, ast.Attribute)}
            if not methods <= {"to", "cuda", "device", "float"}:
                return True
    return False


_PROGRAM = """
import torch
from torch import nn
from torchvision import datasets

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(784, 32)
        self.head = nn.Linear(32, {units})

    def forward(self, x):
        x = torch.relu(self.body(x.flatten(1)))
        return {returned}

model = Net()
criterion = nn.{loss}()
train_set = datasets.MNIST("data", train=True)
train_loader = torch.utils.data.DataLoader(train_set, shuffle=True)
for data, target in train_loader:
    {change}
    output = model(data)
    loss = criterion(output, target)
    loss.backward()
"""


def _program(
    units: int, loss: str, returned: str = "self.head(x)", change: str = "target = target.cuda()"
) -> Run:
    text = _PROGRAM.format(units=units, loss=loss, returned=returned, change=change)
    return make_run(sources={"train.py": text})


_SCORER = """
import torch
from torch import nn
{imports}

scorer = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
for rows, chosen in loader:
    loss = nn.functional.cross_entropy(scorer(rows), chosen)
    loss.backward()
"""


def _scorer(imports: str = "from my_data import loader") -> Run:
    return make_run(sources={"train.py": _SCORER.format(imports=imports)})


FIRES = {
    "cross-entropy over one unit, for a table": _scorer("import pandas as pd"),
    "cross-entropy over one unit": _program(1, "CrossEntropyLoss"),
    "squared error on class labels": _program(10, "MSELoss"),
}

SILENT = {
    "ten classes": _program(10, "CrossEntropyLoss"),
    "near miss: a score for each candidate": _scorer(),
    "near miss: candidates side by side": _program(
        1, "CrossEntropyLoss", "self.head(x).view(-1, 4)"
    ),
    "near miss: one-hot targets": _program(
        10, "MSELoss", change="target = nn.functional.one_hot(target, 10).float()"
    ),
}
