"""Accuracies that count positions which the loss leaves out: padding, marked with -100."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.examples import is_trainer
from traindx.analysis.program.execution.values import (
    Known,
    Part,
    Result,
    Table,
    Unknown,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import batch_part
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

IGNORED = -100  # what cross-entropy leaves out by default
PICKS = frozenset({"argmax", "argmin"})
MASKS = frozenset({"ne", "ge", "gt", "lt", "le"})
# what keeps every match on its way into a mean or a count
KEEPS = frozenset({"float", "astype", "int", "long", "double", "to", "item", "flatten", "view",
                   "reshape", "cpu", "numpy", "asarray", "array"})  # fmt: skip
# collators of Transformers that fill labels up with -100
COLLATORS = ("DataCollatorForTokenClassification", "DataCollatorForSeq2Seq")
LABELS = (1, "label_ids")  # of what a metric of Transformers is given


@dataclass(frozen=True, eq=False)
class PaddedMetric:
    """A comparison of predictions with labels that counts the marked positions as errors."""

    compared: Result
    mark: int


def padded_metrics(story: Story) -> Iterator[PaddedMetric]:
    """Yield the accuracies over all positions of labels of which some are marked as padding."""
    labels_asked = story.recall(_masked)
    for value in story.values:
        operation = operation_of(value)
        if operation is None or operation.name != "eq" or len(operation.operands) != 2:
            continue
        for guess, truth in (operation.operands, operation.operands[::-1]):
            label = whole_tensor(truth)
            if not _is_pick(guess) or id(label) in labels_asked:
                continue
            mark = _mark(story, label)
            is_counted = mark is not None and _counts_all(story, value, label)
            if is_counted and mark is not None and isinstance(value, Result) and value.site:
                yield PaddedMetric(value, mark)


def _is_pick(value: Value) -> bool:
    operation = operation_of(whole_tensor(value))
    return operation is not None and operation.name.rsplit(".", 1)[-1] in PICKS


def _masked(story: Story) -> set[int]:
    """The labels that the program asks which of them are marked, or chooses among."""
    found: set[int] = set()
    for value in story.values:
        operation = operation_of(value)
        if operation is None or len(operation.operands) != 2:
            continue
        bound = [constant(v) for v in operation.operands]
        is_mask = operation.name in MASKS or (operation.name == "eq" and IGNORED in bound)
        if is_mask or operation.name == "getitem":
            found.update(id(whole_tensor(v)) for v in operation.operands)
    return found


def _mark(story: Story, label: Value) -> int | None:
    """The number that stands for padding in labels, where the loss leaves it out."""
    if isinstance(label, Part) and isinstance(label.of, Unknown) and label.key in LABELS:
        return IGNORED if story.recall(_trainer_marks) else None
    inner = batch_part(story, label)
    if inner is label:
        return None
    return IGNORED if _is_marked(inner) else None


def _trainer_marks(story: Story) -> bool:
    """Tell whether a trainer of Transformers evaluates on labels that are marked."""
    for example in story.execution.examples:
        value = example.value
        if not is_trainer(example.loader) or not isinstance(value, Table):
            continue
        labels = value.fields.get("labels")
        if labels is not None and _is_marked(labels):
            return True
    given = (e.kwargs.get("data_collator") for e in story.events if e.name.endswith("Trainer"))
    return any(isinstance(v, Result) and v.maker.endswith(COLLATORS) for v in given)


def _is_marked(labels: Value) -> bool:
    """Tell whether some of the labels are the mark: by padding, or by a list of marks."""
    return any(
        isinstance(v, Known) and type(v.value) is int and v.value == IGNORED
        for v in origins(labels, 300)
    )


def _counts_all(story: Story, match: Value, label: Value) -> bool:
    """Tell whether matches of all positions become a mean, or are counted against all of them."""
    pending, seen = [match], {id(match)}
    while pending:
        value = pending.pop()
        for made in story.made_from(value):
            operation = operation_of(made)
            name = "" if operation is None else operation.name.rsplit(".", 1)[-1]
            if name == "mean" and len(made.inputs) == 1:
                return True
            if name == "sum" and len(made.inputs) == 1 and _is_sized(story, label):
                return True
            if name in KEEPS and id(made) not in seen:
                seen.add(id(made))
                pending.append(made)
    return False


def _is_sized(story: Story, label: Value) -> bool:
    """Tell whether the number of all labels is asked for: `y.numel()`."""
    asked = (operation_of(v) for v in story.made_from(label))
    return any(o is not None and o.name.rsplit(".", 1)[-1] in ("numel", "nelement") for o in asked)
