"""A classifier whose outputs are not as many as the classes of its dataset."""

import dataclasses

from traindx.analysis.program.execution.events import EventForm
from traindx.analysis.program.execution.examples import settings_of
from traindx.analysis.program.execution.values import Part, Result, Value
from traindx.analysis.program.shapes.datasets import CLASSES
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.claims import cite, finding, replace
from traindx.analysis.program.training.contents import same_numbers
from traindx.analysis.program.training.data import split_from
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.layers import layer_kind, setting, size
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Computed, Story, program_of
from traindx.examples import make_run
from traindx.model.findings import Finding, Strength
from traindx.registry import Findings, Run, detector

CAUSE = "output-size-mismatch"
# what code uses that gives a dataset other labels than its own
RELABELS = frozenset({"targets", "labels", "classes", "class_to_idx", "_labels"})
LABELS = (1, -1, "label", "labels")  # the place of the labels in a batch
CASTS = frozenset({"long", "int", "type"})


@detector(needs=("source",), suggests=(CAUSE,))
def check(run: Run) -> Findings:
    """A classifier has other outputs than its dataset has classes.

    ## What it detects
    A loss that takes one logit per class, labels as a loader gives them of a dataset whose classes
    are known (MNIST and CIFAR10 have 10, CIFAR100 has 100), and logits out of a linear layer with
    another number of outputs.

    ## Why it matters
    With too few outputs the first label beyond them fails, on a GPU with an assert in a place far
    off. With too many, training works towards classes that never occur.

    ## What to do
    Build the last layer for the number of classes.

    ## When it is wrong
    Labels that are regrouped, filtered or extended are not followed; code that touches them is left
    alone, and so is a task that makes its own, such as telling by how much an image was turned.
    """
    seen: set[object] = set()
    for loss in program_of(run).results("cross_entropy", "nll_loss"):
        target, logits = loss.operation.argument("target"), loss.operation.argument("input")
        dataset = None if target is None else _dataset(loss.story, target)
        layer = None if logits is None else _last_layer(logits)
        if dataset is None or layer is None or is_test_file(loss.event.module):
            continue
        name = dataset.maker.rsplit(".", 1)[-1]
        outputs, count = size(layer, "out_features"), CLASSES[name]
        place = layer.site.node if layer.site is not None else None
        if outputs not in (None, 1, count) and place not in seen:
            seen.add(place)
            yield _finding(loss, outputs or 0, count, layer, dataset)


def _dataset(story: Story, target: Value) -> Result | None:
    """Return the dataset of known classes whose labels a target is, unchanged."""
    labels = _unchanged(target)
    batch = labels.of if isinstance(labels, Part) and labels.key in LABELS else None
    is_drawn = isinstance(batch, Result) and batch.maker == "builtins.next" and bool(batch.args)
    loader = batch.args[0] if isinstance(batch, Result) and is_drawn else None
    if loader is None or story.kind_of(loader).kind is not Kind.LOADER:
        return None
    given = settings_of(loader)
    dataset = given.get("dataset")
    while dataset is not None and (whole := split_from(dataset)) is not None:
        dataset = whole
    if not isinstance(dataset, Result) or "collate_fn" in given:
        return None
    name = dataset.maker.rsplit(".", 1)[-1]
    is_known = dataset.maker.startswith("torchvision.datasets.") and name in CLASSES
    return dataset if is_known and not _is_relabelled(story, dataset) else None


def _unchanged(value: Value) -> Value:
    while True:
        found = next(iter(same_numbers(value)), value)
        operation = operation_of(found)
        if operation is None or operation.name not in CASTS or not operation.operands:
            return found
        value = operation.operands[0]


def _is_relabelled(story: Story, dataset: Result) -> bool:
    if {"target_transform", "transforms", "**"} & dataset.kwargs.keys():
        return True
    read = {k[1] for k in dataset.fields if isinstance(k, tuple) and k[0] == "part"}
    stored = {e.name for e in story.events if e.act is EventForm.STORE and e.receiver is dataset}
    return bool((read | stored) & RELABELS)


def _last_layer(logits: Value) -> Result | None:
    """Return the linear layer that logits come out of."""
    for found in same_numbers(logits):
        operation = operation_of(found)
        if operation is not None and operation.name == "log_softmax" and operation.operands:
            return _last_layer(operation.operands[0])
        layer = found.receiver if isinstance(found, Result) and found.maker == "()" else None
        if isinstance(layer, Result) and layer_kind(layer) == "Linear":
            return layer
    return None


def _finding(loss: Computed, outputs: int, count: int, layer: Result, dataset: Result) -> Finding:
    name = dataset.maker.rsplit(".", 1)[-1]
    is_few = outputs < count
    effect = "labels beyond them will fail" if is_few else "the rest never occur"
    number = setting(layer, "out_features")
    is_here = number is not None and number.site is not None and layer.site is not None
    is_written = is_here and number is not None and _stands_in(layer, number)
    found = finding(
        f"The model ends in {outputs} outputs and {name} has {count} classes: {effect}",
        CAUSE,
        layer,
        cite(layer, f"the last layer has {outputs} outputs"),
        cite(dataset, f"{name} has {count} classes"),
        cite(loss.event, "the loss compares them here"),
        is_symptom=is_few,
        patch=replace(number, str(count)) if number is not None and is_written else None,
    )
    if is_few:
        return found
    strength = Strength.MODERATE
    return dataclasses.replace(found, strength=strength, shows=None, suggests={CAUSE: strength})


def _stands_in(layer: Result, number: Value) -> bool:
    """Tell whether the number is written in the call that makes the layer."""
    assert layer.site is not None and number.site is not None
    return layer.site.module.statement_of(layer.site.node) is number.site.module.statement_of(
        number.site.node
    )


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
    {before}
    loss = criterion(model(x), {target})
    loss.backward()
"""


def _train(
    classes: str, default: int = 100, more: str = "", target: str = "y", before: str = "pass"
) -> Run:
    text = _TRAIN.format(classes=classes, default=default, more=more, target=target, before=before)
    return make_run(sources={"train.py": text})


_TURNED = "x, turns = turn_by_quarters(x)"

FIRES = {
    "labels that are moved": _train("10", before="x, y = x.cuda(), y.cuda()"),
    "ten outputs for a hundred classes": _train("10"),
    "by default": _train("classes", 10),
}

SILENT = {
    "as many as classes": _train("100"),
    "near miss: a parameter of the right value": _train("classes", 100),
    "near miss: labels of one's own": _train("4", target="turns", before=_TURNED),
    "near miss: labels made of the labels": _train("2", target="(y > 50).long()"),
    "near miss: labels made of the labels, by name": _train("20", before="y = y // 5"),
    "near miss: labels are regrouped": _train("20", more=", target_transform=coarse"),
}
