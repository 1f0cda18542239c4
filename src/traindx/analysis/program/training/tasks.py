"""What a target is: an amount, or the number of a class, as the data and the scores say."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import Items, Known, Part, Result, Value, origins
from traindx.analysis.program.training.facts.batches import drawn
from traindx.analysis.program.training.facts.ranges import SAME
from traindx.analysis.program.training.facts.sample_sets import classes_of, set_name
from traindx.analysis.program.training.operations import name_of_operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

AMOUNT_SETS = frozenset({"load_diabetes", "fetch_california_housing", "make_regression"})
AMOUNT_SCORES = frozenset(
    {"r2_score", "mean_absolute_error", "mean_squared_error", "root_mean_squared_error",
     "mean_absolute_percentage_error", "explained_variance_score"}
)  # fmt: skip
CLASSES = 3  # two may be told apart by an amount between 0 and 1
TABLE = 2  # dimensions: a row for each example
MANY = 80  # values behind a target that are looked at
SCALES = frozenset({"sub", "div", "mul", "log1p", "log", "sqrt"})  # an amount stays one


class Task(Enum):
    """What a model is to say of an example."""

    AMOUNT = "an amount"
    CLASS = "the number of a class"


def task_of(story: Story, target: Value) -> tuple[Task, Value] | None:
    """Return what a target is and what shows it; None where nothing does."""
    behind = _behind(story, target)
    for value, is_scaled in behind:
        if isinstance(value, Part) and value.key in ("target", 1) and set_name(value.of):
            if set_name(value.of) in AMOUNT_SETS:
                return Task.AMOUNT, value.of
            if not is_scaled and (classes_of(value.of) or 0) >= CLASSES:
                return Task.CLASS, value.of
    score = _score(story, {id(v) for v, _ in behind})
    return None if score is None else (Task.AMOUNT, score)


def is_multi_hot(story: Story, target: Value) -> bool:
    """Tell whether an example is marked with any number of classes: ones in a row of zeros."""
    if any(_is_tested_by_class(story, value) for value, _ in _behind(story, target)):
        return True
    batch = drawn(story, target) if isinstance(target, (Part, Result)) else None
    if batch is None or not isinstance(batch.value, Result) or batch.value.maker != "torch.zeros":
        return False
    written = [
        e
        for x in story.execution.examples
        for e in x.events
        if e.receiver is batch.value and e.name == "[]"
    ]
    return bool(written) and all(any(not t.loop.is_whole for t in e.turns) for e in written)


def _is_tested_by_class(story: Story, value: Value) -> bool:
    """`scores > 0`, with a column for each class: as many are true as happen to be."""
    operation = operation_of(value)
    is_encoded = isinstance(value, Result) and value.maker in (".fit_transform", ".transform")
    if is_encoded and isinstance(value, Result) and isinstance(value.receiver, Result):
        return value.receiver.maker.endswith(".MultiLabelBinarizer")
    if operation is None or operation.name not in ("gt", "lt", "ge", "le"):
        return False
    shape = story.shapes.shape(value)
    is_table = shape is not None and not shape.is_open and len(shape.sizes) == TABLE
    columns = shape.sizes[-1] if shape is not None and is_table else 1
    return columns != 1 and any(isinstance(v, Known) for v in operation.operands)


def _behind(story: Story, target: Value) -> list[tuple[Value, bool]]:
    """Return what a target is taken from, one behind another, and whether it was scaled."""
    found: list[tuple[Value, bool]] = []
    value: Value | None = target
    is_scaled = False
    while isinstance(value, (Part, Result)) and len(found) < MANY:
        found.append((value, is_scaled))
        batch = drawn(story, value)
        operation = operation_of(value)
        name = "" if operation is None else operation.name.rsplit(".", 1)[-1]
        is_scaled = is_scaled or name in SCALES
        if batch is not None:
            value = batch.value
        elif isinstance(value, Part):
            value = _split_part(value)
        elif name in SAME or name in SCALES or name == "next":
            value = next(iter(operation.operands), None) if operation is not None else None
        else:
            value = None
    return found


def _split_part(part: Part) -> Value | None:
    """Return what a part of a split was split from, or what an attribute belongs to."""
    if isinstance(part.of, Result) and part.of.maker.endswith(".train_test_split"):
        at = part.key // 2 if isinstance(part.key, int) else -1
        return part.of.args[at] if 0 <= at < len(part.of.args) else None
    return part.of if part.key in ("values", "data", "T") else None


def _scores(story: Story) -> list[ProgramEvent]:
    """Where a metric or an absolute value is computed."""
    return [
        e
        for e in story.events
        if e.name.startswith("sklearn.metrics.") or name_of_operation(e.result) == "abs"
    ]


def _score(story: Story, targets: set[int]) -> Value | None:
    """Return a score that takes the same target for an amount: its distance from an output."""
    for event in story.recall(_scores):
        last = event.name.rsplit(".", 1)[-1]
        is_metric = event.name.startswith("sklearn.metrics.") and last in AMOUNT_SCORES
        if is_metric and event.args and id(event.args[0]) in targets:
            return event.result
        distance = operation_of(event.result)
        if distance is None or distance.name != "abs" or not distance.operands:
            continue
        difference = operation_of(distance.operands[0])
        if difference is None or difference.name != "sub":
            continue
        sides = [s for s in difference.operands if not isinstance(s, Items)]
        if any(map(_is_probability, sides)):
            continue  # how sure of a class a model is
        if any(_is_plain(s) and id(s) in targets for s in sides):
            return event.result
    return None


def _is_probability(value: Value) -> bool:
    made = (operation_of(v) for v in origins(value, 20))
    return any(m is not None and m.name in ("sigmoid", "softmax") for m in made)


def _is_plain(value: Value) -> bool:
    """Tell whether a value is data as it is, and nothing that a model or a loss computed."""
    return not any(isinstance(v, Result) and v.maker == "()" for v in origins(value, 20))
