"""Predictions and targets of one batch that meet in two shapes: every one with every other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.truth import is_none
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.acts import Do
from traindx.analysis.program.training.gradients import has_history, has_run_behind
from traindx.analysis.program.training.operations import (
    LOSSES,
    Operation,
    name_of_operation,
    operation_of,
)
from traindx.analysis.program.training.shapes import (
    is_reshaped,
    is_row_of_batch,
    last_size,
    shape_of,
)

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Computed, Story

# what leaves the shape of a tensor as it is
ELEMENTWISE = frozenset(
    {"gt", "ge", "lt", "le", "long", "int", "float", "double", "bool", "round", "sigmoid", "to",
     "detach", "cpu", "cuda", "type", "clone", "tanh", "exp", "half", "sub", "neg"}
)  # fmt: skip
WITH_OTHER = frozenset({"gt", "ge", "lt", "le", "sub"})

COMPARISONS = frozenset({"sub", "eq", "ne"})
REGRESSIONS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


def paired_losses(story: Story) -> Iterator[Result]:
    """Yield the differences in losses that set a column of a batch against a row of it."""
    for deed in story.does(Do.BACKWARD):
        for value in origins(deed.subject) if deed.subject is not None else ():
            if not isinstance(value, Result) or value.maker != "operator.sub":
                continue
            learnt = [v for v in value.args if has_history(v) is Answer.YES]
            if len(learnt) == 1 and _meet(story, value):
                yield value


@dataclass(frozen=True, eq=False)
class BroadcastLoss:
    """A loss of torch that sets a column against a row."""

    loss: Computed
    column: Value
    row: Value


def broadcast_losses(story: Story) -> Iterator[BroadcastLoss]:
    """Yield the losses of torch in which predictions and targets meet in two shapes."""
    for loss in story.operations(*REGRESSIONS):
        given, target = loss.operation.argument("input"), loss.operation.argument("target")
        if given is None or target is None:
            continue
        if _is_column_on_row(story, given, target) or _is_column_on_row(story, target, given):
            is_given = last_size(given) == 1 or story.shapes.pairs_all(given, target)
            yield BroadcastLoss(loss, *((given, target) if is_given else (target, given)))


def _is_column_on_row(story: Story, column: Value, row: Value) -> bool:
    """Tell whether one side is a column for certain, and the other one flat."""
    is_row = is_row_of_batch(row) and last_size(column) == 1
    is_row = is_row or story.shapes.pairs_all(column, row)
    return is_row and not any(is_reshaped(story, v) for v in (column, row))


def paired_metrics(story: Story) -> Iterator[Result]:
    """Yield the same of what is only measured: what a model gave, against what it should give."""
    learnt = {
        id(v)
        for deed in story.does(Do.BACKWARD, Do.GRAD)
        for v in (origins(deed.subject) if deed.subject is not None else ())
    }
    for event in story.events:
        value = event.result
        if name_of_operation(value) not in COMPARISONS or id(value) in learnt:
            continue
        operation = operation_of(value)
        if operation is None:
            continue
        sides = operation.operands[:2]
        is_judged = len(sides) == 2 and [has_run_behind(v) for v in sides].count(True) == 1
        if is_judged and isinstance(value, Result) and _meet(story, value):
            yield value


def _meet(story: Story, value: Result) -> bool:
    """Tell whether a column and a row of as many examples meet."""
    operation = operation_of(value)
    first, second = (operation.operands if operation is not None else ())[:2]
    if any(is_reshaped(story, v) for v in (first, second)):
        return False
    shapes = story.shapes
    if shapes.pairs_all(first, second) or shapes.pairs_all(second, first):
        return True
    is_wrong = (_is_column(first) and is_row_of_batch(second)) or (
        is_row_of_batch(first) and _is_column(second)
    )
    is_wrong = is_wrong or _is_known(story, first, second) or _is_known(story, second, first)
    return is_wrong and _are_of_one(first, second)


def _is_known(story: Story, column: Value, row: Value) -> bool:
    """Tell whether the shapes of two tensors are in sight, and are those of a column and a row."""
    found = [story.shapes.shape(v) for v in (column, row)]
    if any(shape is None or shape.is_open for shape in found):
        return False
    first, second = (shape.sizes for shape in found if shape is not None)
    is_column = len(first) == 2 and first[1] == 1 and first[0] != 1
    return is_column and len(second) == 1 and second[0] != 1


def _is_column(value: Value) -> bool:
    shape = shape_of(value)
    if shape is None:
        return last_size(value) == 1
    return len(shape) == 2 and shape[1] == 1 and shape[0] != 1


def _are_of_one(first: Value, second: Value) -> bool:
    """Tell whether predictions meet as many targets, and not another row."""
    counts = [shape[0] if shape else None for shape in map(shape_of, (first, second))]
    if counts[0] != counts[1] or counts[0] is not None:
        return counts[0] == counts[1]
    below = [{id(v) for v in origins(side) if isinstance(v, Result)} for side in (first, second)]
    return bool(below[0] & below[1])  # rows of one batch


def crossed_metrics(
    story: Story,
) -> Iterator[tuple[Result | ProgramEvent, ProgramEvent | None]]:
    """Yield metrics over every pair of a batch, and the loss that gets the labels as a column."""
    yield from ((m, None) for m in paired_metrics(story) if m.site is not None)
    yield from compared_columns(story)


def compared_columns(story: Story) -> Iterator[tuple[ProgramEvent, ProgramEvent]]:
    """Yield comparisons of an output with labels that its loss gets as a column, and that loss."""
    columns = _columns(story)
    for event in story.events if columns else ():
        is_comparison = name_of_operation(event.result) in ("eq", "ne")
        operation = operation_of(event.result) if is_comparison else None
        if operation is None:
            continue
        sides = {id(_source(v)) for v in operation.operands[:2]}
        loss = next((e for o, y, e in columns if sides == {id(o), id(y)}), None)
        if loss is not None:
            yield event, loss


def _columns(story: Story) -> list[tuple[Value, Value, ProgramEvent]]:
    """The outputs and labels of losses for which the labels got another dimension."""
    found = []
    for event in story.events:
        is_loss = name_of_operation(event.result) in LOSSES
        operation = operation_of(event.result) if is_loss else None
        if operation is None or len(operation.operands) < 2:
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
