"""Scores of a model: whether what a metric is given is what it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Items, Part, Value, constant
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.gradients import has_run_behind
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# functions of scikit-learn that take the truth first and tell it from the prediction
TRUTH_FIRST = frozenset({"precision_score", "recall_score", "roc_auc_score", "r2_score",
                         "average_precision_score", "classification_report", "log_loss",
                         "balanced_accuracy_score", "precision_recall_fscore_support",
                         "roc_curve", "precision_recall_curve"})  # fmt: skip
RANKINGS = frozenset({"roc_auc_score", "average_precision_score", "roc_curve",
                      "precision_recall_curve"})  # fmt: skip
DECIDES = frozenset({"gt", "ge", "lt", "le", "argmax", "round"})
AS_NUMBERS = frozenset({"int", "long", "float", "astype", "tolist", "numpy", "cpu", "detach", "to",
                        "double", "bool", "squeeze", "flatten", "view", "reshape", "cat", "ravel",
                        "concatenate", "array", "tensor", "asarray", "stack", "type"})  # fmt: skip
LOGIT_LOSSES = frozenset({"binary_cross_entropy_with_logits", "BCEWithLogitsLoss"})


@dataclass(frozen=True, eq=False)
class MisreadScore:
    """A metric that is given something else than it takes it for."""

    event: ProgramEvent
    says: str


def misread_scores(story: Story) -> Iterator[MisreadScore]:
    """Yield the metrics whose arguments are swapped, decided already, or no decision yet."""
    logits = _logits(story)
    for event in story.events:
        home, _, last = event.name.rpartition(".")
        if home.startswith("sklearn.metrics") and last in TRUTH_FIRST:
            yield from _of_library(event, last)
        operation = operation_of(event.result)
        if operation is None or len(operation.operands) != 2:
            continue
        if operation.name in ("eq", "ne") and any(map(_is_largest_value, operation.operands)):
            yield MisreadScore(event, "The largest score, not its index, is compared with labels")
        score, bound = operation.operands
        is_half = operation.name in ("gt", "ge", "lt", "le") and constant(bound) == 0.5
        if is_half and id(whole_tensor(score)) in logits:
            yield MisreadScore(event, "Logits, which are no probabilities, are compared with 0.5")


def _of_library(event: ProgramEvent, name: str) -> Iterator[MisreadScore]:
    truth, given = event.argument("y_true", 0), event.argument("y_score", 1)
    given = event.argument("y_pred", 1) if given is None else given
    if truth is None or given is None:
        return
    if has_run_behind(truth) and not has_run_behind(given):
        yield MisreadScore(event, f"{name} gets the predictions first and the labels second")
    elif name in RANKINGS and _is_decided(given):
        yield MisreadScore(event, f"{name} ranks scores, and gets classes that are decided already")


def _is_decided(value: Value, depth: int = 16) -> bool:
    """Tell whether a value is a class, cut from a score by a threshold or the largest one."""
    if depth == 0:
        return False
    if isinstance(value, Items):
        return bool(value.members) and all(_is_decided(v, depth - 1) for v in value.members)
    operation = operation_of(value)
    if operation is None or not operation.operands:
        return False
    name = operation.name.rsplit(".", 1)[-1]
    if name in DECIDES:
        return has_run_behind(value)
    if name in ("add", "iadd"):
        grown = [v for v in operation.operands if not (isinstance(v, Items) and not v.members)]
        return bool(grown) and all(_is_decided(v, depth - 1) for v in grown)
    return name in AS_NUMBERS and _is_decided(operation.operands[0], depth - 1)


def _is_largest_value(value: Value) -> bool:
    """`scores.max(1)[0]`: the largest score of each row, and not which it is."""
    inner = whole_tensor(value)
    if not isinstance(inner, Part) or inner.key not in (0, "values"):
        return False
    operation = operation_of(inner.of)
    if operation is None or operation.name != "max" or not operation.operands:
        return False
    return len(operation.operands) == 2 and has_run_behind(operation.operands[0])


def _logits(story: Story) -> set[int]:
    """What models give whose output a loss takes for logits of one class."""
    models = set()
    for computed in story.operations(*LOGIT_LOSSES):
        given = computed.operation.argument("input")
        output = None if given is None else whole_tensor(given)
        models |= {id(d.subject) for d in story.does(Do.FORWARD) if d.event.result is output}
    return {id(whole_tensor(d.event.result)) for d in story.does(Do.FORWARD)
            if id(d.subject) in models and d.event.result is not None}  # fmt: skip
