"""Classifiers with another number of outputs than their dataset has classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx.analysis.program.execution.events import EventForm
from traindx.analysis.program.execution.examples import settings_of
from traindx.analysis.program.execution.values import Part, Result, Value
from traindx.analysis.program.shapes.datasets import CLASSES
from traindx.analysis.program.shapes.structure import is_test_file
from traindx.analysis.program.training.contents import same_numbers
from traindx.analysis.program.training.data import split_from
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.layers import layer_kind, setting, size
from traindx.analysis.program.training.operations import operation_of
from traindx.analysis.program.training.program import Computed, Story

# what code uses that gives a dataset other labels than its own
RELABELS = frozenset({"targets", "labels", "classes", "class_to_idx", "_labels"})
LABELS = (1, -1, "label", "labels")  # the place of the labels in a batch
CASTS = frozenset({"long", "int", "type"})


@dataclass(frozen=True, eq=False)
class ClassMiscount:
    """A classifier whose outputs are not as many as the classes of its dataset."""

    loss: Computed
    layer: Result
    outputs: int
    dataset: Result

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.dataset.maker.rsplit(".", 1)[-1]

    @property
    def classes(self) -> int:
        return CLASSES[self.name]

    @property
    def written(self) -> Value | None:
        """The number of outputs, if it is written in the call that makes the layer."""
        number, at = setting(self.layer, "out_features"), self.layer.site
        if number is None or number.site is None or at is None:
            return None
        statement = at.module.statement_of(at.node)
        is_here = statement is number.site.module.statement_of(number.site.node)
        return number if is_here else None


def miscounts(story: Story) -> Iterator[ClassMiscount]:
    """Yield the losses of classifiers with outputs for other classes than the labels have."""
    for loss in story.operations("cross_entropy", "nll_loss"):
        target, logits = loss.operation.argument("target"), loss.operation.argument("input")
        dataset = None if target is None else _dataset(story, target)
        layer = None if logits is None else _last_layer(logits)
        if dataset is None or layer is None or is_test_file(loss.event.module):
            continue
        found = ClassMiscount(loss, layer, size(layer, "out_features") or 0, dataset)
        if found.outputs not in (0, 1, found.classes):
            yield found


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
    stored = {e.name for e in story.index.on(dataset) if e.act is EventForm.STORE}
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
