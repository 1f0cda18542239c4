"""Data that stand class by class: whose labels come in blocks, however these were put together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent, Turn
from traindx.analysis.program.execution.values import (
    Answer,
    Instance,
    Items,
    Result,
    Value,
    origins,
)
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import (
    JOINS,
    SHUFFLES,
    STACKS,
    data_chain,
    feeds,
    is_draw,
    loader_behind,
)
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

BLOCKS = frozenset({"full", "zeros", "ones", "repeat", "full_like", "zeros_like", "ones_like",
                    "repeat_interleave"})  # fmt: skip
# what lists the same thing again and again, one after the other
REPEATS = frozenset({"numpy.repeat", "torch.repeat_interleave", ".repeat_interleave"})
COUNTS = frozenset({"arange", "range"})


def sorted_classes(story: Story, target: Value) -> Value | None:
    """Return what puts labels class by class, where nothing after it mixes them.

    That is a concatenation of blocks of one class each: `np.concatenate([np.zeros(n), …])`.
    """
    if _shuffles(story):
        return None
    is_batch = False  # taken out of it, turn by turn
    for value in data_chain(story, target):
        if _is_of_blocks(value):
            return value if is_batch else None
        if isinstance(value, Result) and value.maker == "operator.getitem":
            if any(is_draw(v) for v in origins(value.args[1], 200)):
                return None
            is_batch = True
        loader = loader_behind(value)
        if loader is not None:
            feed = next((f for f in feeds(story) if f.loader is loader), None)
            if feed is None or feed.shuffles is not Answer.NO or feed.sampler is not None:
                return None
            is_batch = True
    return None


def class_by_class(story: Story, dataset: Value) -> Value | None:
    """Return what lists the examples of a dataset one class after the other."""
    if _shuffles(story):
        return None
    if isinstance(dataset, Instance):
        return next(_grouped(story, dataset), None)
    is_join = isinstance(dataset, Result) and dataset.maker.rsplit(".", 1)[-1] in JOINS
    if not isinstance(dataset, Result) or not is_join or not dataset.args:
        return None
    parts = dataset.args[0].members if isinstance(dataset.args[0], Items) else []
    return dataset if len(parts) > 1 and all(map(_is_of_one_class, parts)) else None


def _shuffles(story: Story) -> bool:
    """Tell whether a story shuffles anything in place."""
    return bool(story.index.ending(*SHUFFLES))


def _is_of_one_class(dataset: Value) -> bool:
    """Tell whether all labels of a part are the same: `TensorDataset(x, torch.full((n,), k))`."""
    is_tensors = isinstance(dataset, Result) and dataset.maker.endswith(".TensorDataset")
    return isinstance(dataset, Result) and is_tensors and any(map(_is_block, dataset.args[1:]))


def _grouped(story: Story, dataset: Instance) -> Iterator[Value]:
    """Yield the lists of a dataset that two loops fill: over classes, and over what each has."""
    kept = [v for v in dataset.fields.values() if isinstance(v, Items)]
    for event in story.events:
        owner = next((v for v in kept if event.receiver is v), None)
        if event.name != ".append" or owner is None or len(event.turns) < 2 or event.guards:
            continue
        row = event.args[0]
        if isinstance(row, Items) and any(_is_of_group(v, event) for v in row.members[1:]):
            yield owner if owner.site is not None else dataset


def _is_of_group(label: Value, event: ProgramEvent) -> bool:
    """Tell whether a label is of the outer loop alone, and an index or name of its turns."""
    outer, inner = event.turns[-2:]
    return _is_element(label, outer) and not _is_element(label, inner)


def _is_element(value: Value, turn: Turn) -> bool:
    over = turn.loop.over
    found = list(origins(value, 60))
    is_counted = isinstance(over, Result) and over.maker == "builtins.enumerate" and any(
        isinstance(v, Result) and v.maker == "builtins.range" and not v.args for v in found
    )  # fmt: skip
    return is_counted or (over is not None and any(v is over for v in found))


def _is_of_blocks(value: Value) -> bool:
    operation = operation_of(value)
    if operation is None or not operation.operands:
        return False
    if isinstance(value, Result) and value.maker in REPEATS:
        counted = operation_of(whole_tensor(operation.operands[0]))
        return counted is not None and counted.name.rsplit(".", 1)[-1] in COUNTS
    if operation.name.rsplit(".", 1)[-1] not in STACKS | {"cat", "hstack"}:
        return False
    given = operation.operands[0]
    members = given.members if isinstance(given, Items) else []
    return len(members) > 1 and all(map(_is_block, members))


def _is_block(value: Value) -> bool:
    operation = operation_of(whole_tensor(value))
    if operation is None:
        return False
    if operation.name in ("add", "mul") and operation.operands:  # `np.zeros(n) + label`
        return any(_is_block(v) for v in operation.operands)
    return operation.name.rsplit(".", 1)[-1] in BLOCKS
