"""A classifier whose outputs are not as many as the classes of its dataset."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx.evidence import Finding, Location, Strength, cite_source
from traindx.model import Run, make_run
from traindx.registry import detector
from traindx.source import Project, project_of
from traindx.source.module import argument
from traindx.source.patches import diff, replacing
from traindx.source.shapes.datasets import class_count
from traindx.source.shapes.structure import is_test_file
from traindx.source.shapes.tracing import Trace
from traindx.source.shapes.uses import called_models
from traindx.source.shapes.values import Layer

LOSSES = frozenset({"CrossEntropyLoss", "NLLLoss", "cross_entropy", "nll_loss"})
# code that may give a dataset other labels than its own
RELABELS = frozenset({"targets", "labels", "classes", "class_to_idx", "_labels"})


@detector(needs=("source",), suggests=("output-size-mismatch",))
def check(run: Run) -> Iterator[Finding]:
    """A classifier has other outputs than its dataset has classes.

    ## What it detects
    A dataset whose classes are known (MNIST and CIFAR10 have 10, CIFAR100 has 100), a loss that
    takes one logit per class, and a model whose forward pass ends in another number.

    ## Why it matters
    With too few outputs the first label beyond them fails, on a GPU with an assert in a place far
    off. With too many, training works towards classes that never occur.

    ## What to do
    Build the last layer for the number of classes.

    ## When it is wrong
    Labels that are regrouped, filtered or extended are not followed; code that touches them is left
    alone.
    """
    project = project_of(run)
    known = class_count(project)
    if known is None or not _has_class_loss(project) or _relabels(project):
        return
    count, name, module, call = known
    models = [(m, t) for m, t in called_models(project) if not is_test_file(m)]
    for _, trace in models if len(models) == 1 else ():
        outputs = _outputs(trace)
        if outputs is None or outputs[0] in (count, 1):
            continue
        size, layer = outputs
        yield _finding(size, count, layer, cite=(module.path, call.lineno, name))


def _has_class_loss(project: Project) -> bool:
    names = (n.rsplit(".", 1)[-1] for m in project.modules for _, n in m.calls())
    return any(n in LOSSES for n in names)


def _relabels(project: Project) -> bool:
    for module in project.modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr in RELABELS:
                return True
            if isinstance(node, ast.Call) and "Subset" in (module.qualified(node.func) or ""):
                return True
    return False


def _outputs(trace: Trace) -> tuple[int, Layer] | None:
    """The last size of the only output, and the linear layer that made it."""
    if trace.gave_up or trace.conflict or len(trace.output) != 1 or not trace.output[0].sizes:
        return None
    shape, last = trace.output[0], trace.output[0].sizes[-1]
    if not isinstance(last, int) or not (shape.is_open or len(shape.sizes) == 2):
        return None
    for step in reversed(trace.steps):
        if step.layer is not None and "kernel_size" in step.layer.options:
            return None
        if step.layer is not None and step.layer.kind == "Linear":
            is_it = step.layer.number("out_features") == last
            return (last, step.layer) if is_it else None
    return None


def _finding(size: int, count: int, layer: Layer, cite: tuple[str, int, str]) -> Finding:
    path, line, name = cite
    is_few = size < count
    effect = "labels beyond them will fail" if is_few else "the rest never occur"
    node = layer.node
    return Finding(
        claim=f"The model ends in {size} outputs and {name} has {count} classes: {effect}",
        strength=Strength.STRONG if is_few else Strength.MODERATE,
        evidence=(
            cite_source(layer.module.path, node.lineno, f"the last layer has {size} outputs"),
            cite_source(path, line, f"{name} has {count} classes"),
        ),
        shows="output-size-mismatch" if is_few else None,
        suggests={} if is_few else {"output-size-mismatch": Strength.MODERATE},
        is_symptom=is_few,
        location=Location(layer.module.path, node.lineno, node.end_lineno or node.lineno),
        patch=_patch(layer, count),
    )


def _patch(layer: Layer, count: int) -> str | None:
    node = argument(layer.node, "out_features", 1)
    is_number = isinstance(node, ast.Constant)
    return diff(layer.module, replacing(node, str(count))) if node and is_number else None


_TRAIN = """
import torch
from torch import nn
from torchvision import datasets, transforms

class Net(nn.Module):
    def __init__(self, classes={default}):
        super().__init__()
        self.fc1 = nn.Linear(3072, 256)
        self.fc2 = nn.Linear(256, {classes})

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))

data = datasets.CIFAR100("data", transform=transforms.ToTensor(){more})
loader = torch.utils.data.DataLoader(data, batch_size=32)
model = Net()
criterion = nn.CrossEntropyLoss()
for x, y in loader:
    loss = criterion(model(x), y)
    loss.backward()
"""


def _train(classes: str, default: int = 100, more: str = "") -> Run:
    text = _TRAIN.format(classes=classes, default=default, more=more)
    return make_run(sources={"train.py": text})


FIRES = {"ten outputs for a hundred classes": _train("10"), "by default": _train("classes", 10)}

SILENT = {
    "as many as classes": _train("100"),
    "near miss: a parameter of the right value": _train("classes", 100),
    "near miss: labels are regrouped": _train("20", more=", target_transform=coarse"),
}
