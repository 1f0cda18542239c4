"""Class indices and lookups that reach beyond what they point into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.examples import INDEX
from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Unknown,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.shapes.sizes import Dim, is_dim
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.facts.batches import drawn
from traindx.analysis.program.training.facts.certainty import is_certain, makes
from traindx.analysis.program.training.facts.classifiers import classifiers, labels_learnt
from traindx.analysis.program.training.facts.counts import beyond, count_of, highest_of
from traindx.analysis.program.training.facts.ranges import SAME, Reached, kept_members
from traindx.analysis.program.training.layers import layer_kind, setting, size
from traindx.analysis.program.training.operations import Operation, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

IGNORED = -100  # torch's label that is not counted
TEXT = ("tok", "vocab", "word", "char", "ids", "text", "stoi")


@dataclass(frozen=True, slots=True, eq=False)
class IndexClash:
    """Numbers that reach beyond a table of classes or rows."""

    cause: str
    text: str
    event: ProgramEvent
    index: Value
    holder: Value | None  # the layer that is too small


def index_clashes(story: Story) -> Iterator[IndexClash]:
    """Yield the lookups and losses that will meet a number out of range."""
    for event in story.events:
        if event.act is not EventForm.CALL or event.result is None:
            continue
        found = _of_event(story, event)
        if found is not None and is_certain(event):
            yield found
    yield from _of_classifiers(story)
    yield from _of_windows(story)


def _of_event(story: Story, event: ProgramEvent) -> IndexClash | None:
    if event.name == "()" and layer_kind(event.receiver) == "Embedding" and event.args:
        return _of_lookup(story, event)
    operation = operation_of(event.result)
    if operation is None or not makes(event):
        return None
    if operation.name in ("cross_entropy", "nll_loss"):
        return _of_loss(story, event, operation)
    if operation.name == "one_hot" and operation.operands:
        return _of_one_hot(story, event, operation)
    if operation.name in ("gather", "index_select"):
        return _of_gather(story, event, operation)
    return None


def _of_lookup(story: Story, event: ProgramEvent) -> IndexClash | None:
    rows, index = size(event.receiver, "num_embeddings"), event.args[0]
    reached = story.ranges.of(index)
    if rows is None or reached is None:
        rest = beyond(
            highest_of(story, index), count_of(story, setting(event.receiver, "num_embeddings"))
        )
        if rest is None:
            return None
        text = f"Embedding is asked for row number {rest} beyond its last: it has too few rows"
    elif reached.low >= 0 and reached.high < rows:
        return None
    else:
        outside = reached.high if reached.high >= rows else reached.low
        text = f"Embedding has {rows} rows, 0 to {rows - 1}, and is asked for row {outside}"
    rows_given = setting(event.receiver, "num_embeddings")
    counted = () if rows_given is None else origins(rows_given, 30)
    sources = (event.receiver, *counted, *origins(index, 200))
    names = " ".join(n for v in sources if v is not None for n in v.names).lower()
    is_text = any(w in names for w in TEXT) and not _is_position(index)
    cause = "vocabulary-mismatch" if is_text else "index-out-of-range"
    return IndexClash(cause, text, event, index, event.receiver)


def _is_position(index: Value) -> bool:
    """Tell whether rows are asked for by their place in a sequence, whatever stands there."""
    made = operation_of(whole_tensor(index))
    return made is not None and made.name in ("arange", "numpy.arange", "builtins.range", "cumsum")


def _of_windows(story: Story) -> Iterator[IndexClash]:
    """Yield the examples that reach past the end of the data, for the length that is promised."""
    for example in story.execution.examples:
        length = story.shapes.of(example.length)
        for event in example.events:
            added = _added(event.args[1]) if len(event.args) == 2 else None
            if event.name != "operator.getitem" or added is None or not is_certain(event):
                continue
            shape = story.shapes.shape(event.args[0])
            last = None if not is_dim(length) else length - 1 + added
            rest = beyond(last, shape.sizes[0]) if shape and not shape.is_open else None
            if rest is not None:
                text = f"The last example reads {rest} beyond the end of the data"
                yield IndexClash("index-out-of-range", text, event, event.args[0], None)


def _added(key: Value) -> int | None:
    """Return what is added to the number of an example: `self.data[i + 24]`, `[i + 24, 0]`."""
    key = key.members[0] if isinstance(key, Items) and key.members else key
    if not isinstance(key, Result) or key.maker != "operator.add":
        return None
    is_index = any(isinstance(v, Unknown) and v.name == INDEX for v in key.args)
    numbers = [n for v in key.args if type(n := constant(v)) is int]
    return numbers[0] if is_index and len(numbers) == 1 else None


def _of_loss(story: Story, event: ProgramEvent, operation: Operation) -> IndexClash | None:
    target, output = operation.argument("target"), operation.argument("input")
    kept = None if target is None else _of_kept(story, event, target, _last_layer(output))
    if kept is not None:
        return kept
    shape, reached = story.shapes.shape(output), story.ranges.of(target)
    if shape is None or reached is None or target is None or not shape.sizes:
        return None
    if story.shapes.is_clash(event.result):
        return None
    at = 1 if not shape.is_open and len(shape.sizes) > 1 else -1
    if shape.is_open and operation.name and len(shape.sizes) > 1:
        return None
    count: Dim | None = shape.sizes[at]
    layer = _last_layer(output)
    if not isinstance(count, int):
        count = count_of(story, setting(layer, "out_features")) if layer is not None else None
    if not isinstance(count, int):
        return None
    given = operation.settings.get("ignore_index")
    if given is not None and not isinstance(given, Known):
        return None
    ignored = IGNORED if given is None else constant(given)
    return _beyond(count, reached, ignored, event, target, layer)


def _of_kept(
    story: Story, event: ProgramEvent, target: Value, layer: Value | None
) -> IndexClash | None:  # fmt: skip
    """Compare the outputs with labels of some classes that keep the numbers of all classes."""
    counted = setting(layer, "out_features") if layer is not None else None
    is_count = isinstance(counted, Result) and counted.maker == "builtins.len"
    if not is_count or not isinstance(counted, Result) or not counted.args:
        return None
    classes = counted.args[0]
    is_some = isinstance(classes, Items) and not classes.is_whole
    if not is_some or not any(kept_members(v) is classes for v in _unchanged(story, target)):
        return None
    text = "Labels of dropped classes leave gaps: those kept are counted, and not numbered anew"
    return IndexClash("label-out-of-range", text, event, target, layer)


def _unchanged(story: Story, value: Value, depth: int = 20) -> Iterator[Value]:
    """Yield where labels come from, through what keeps their numbers."""
    while depth:
        yield value
        batch = drawn(story, value) if isinstance(value, (Part, Result)) else None
        operation = operation_of(value)
        if batch is not None:
            value = batch.value
        elif operation is None or not operation.operands:
            return
        elif operation.name.rsplit(".", 1)[-1] in SAME:
            value = operation.operands[0]
        else:
            return
        depth -= 1


def _beyond(
    count: int, reached: Reached, ignored: object, event: ProgramEvent, target: Value,
    layer: Value | None,
) -> IndexClash | None:  # fmt: skip
    if count == 1 or (reached.high < count and reached.low >= 0):
        return None
    if ignored == reached.low and reached.high >= count:
        reached = Reached(0, reached.high)  # what is lowest beside it, is not known
    if ignored in (reached.high, reached.low):
        return None
    outside = reached.high if reached.high >= count else reached.low
    if reached.high >= count and reached.low == 0 and not reached.is_marked:
        text = f"Labels reach {reached.high} and the model has {count} outputs"
        return IndexClash("output-size-mismatch", text, event, target, layer)
    text = f"The label {outside} is no class index of {count} classes, 0 to {count - 1}"
    return IndexClash("label-out-of-range", text, event, target, layer)


def _last_layer(value: Value | None) -> Value | None:
    for _ in range(12):
        operation = operation_of(value)
        if operation is None or not operation.operands:
            return None
        if isinstance(value, Result) and layer_kind(value.receiver) in ("Linear", "Conv2d"):
            return value.receiver
        value = operation.operands[0]
    return None


def _of_one_hot(story: Story, event: ProgramEvent, operation: Operation) -> IndexClash | None:
    given = operation.settings.get("num_classes", next(iter(operation.operands[1:]), None))
    count, reached = constant(given), story.ranges.of(operation.operands[0])
    if not isinstance(count, int) or count < 1 or reached is None:
        return None
    return _beyond(count, reached, None, event, operation.operands[0], None)


def _of_gather(story: Story, event: ProgramEvent, operation: Operation) -> IndexClash | None:
    """Compare the numbers that pick along a dimension with its size."""
    owner, dim, index = (*operation.operands, None, None, None)[:3]
    dim, index = operation.settings.get("dim", dim), operation.settings.get("index", index)
    shape, at, reached = story.shapes.shape(owner), constant(dim), story.ranges.of(index)
    if shape is None or shape.is_open or not isinstance(at, int) or reached is None:
        return None
    size = shape.sizes[at] if -len(shape.sizes) <= at < len(shape.sizes) else None
    if not isinstance(size, int) or index is None or 0 <= reached.low <= reached.high < size:
        return None
    outside = reached.high if reached.high >= size else reached.low
    text = f"{operation.name} is asked for number {outside} of {size} along dimension {at}"
    return IndexClash("index-out-of-range", text, event, index, None)


def _of_classifiers(story: Story) -> Iterator[IndexClash]:
    """Compare the labels that a classifier of Transformers learns with its outputs."""
    made = classifiers(story)
    if len(set(made.values())) != 1:
        return
    (model, count), *_ = made.items()
    for event, labels, reached in labels_learnt(story, made):
        found = _beyond(count, reached, IGNORED, event, labels, model)
        if found is not None and reached.high >= count:
            yield found
            return
