"""Whether two loaders hand out the same rows, by what an example of each is made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traindx.analysis.program.execution.examples import INDEX
from traindx.analysis.program.execution.values import (
    External,
    Instance,
    Items,
    Known,
    Part,
    Result,
    Unknown,
    Value,
    origins,
)
from traindx.analysis.program.training.data import SEEDS, is_draw
from traindx.analysis.program.training.loaders import dataset_of, generator_behind

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# what gives the same of the same each time
SURE = ("torch.", "numpy.", "operator.", "builtins.", "sklearn.datasets.load_", "pandas.",
        "PIL.Image.open", "cv2.imread", "math.", "json.", "os.path.")  # fmt: skip
DEEP = 60


def same_rows(story: Story, one: Value, other: Value) -> bool:
    """Tell whether two loaders certainly read the same rows, one perhaps with augmentation.

    Both the label and what the input is made from must be the same at the same index.
    """
    first, second = (_example(story, loader) for loader in (one, other))
    if first is None or second is None or len(first) != len(second):
        return False
    labels, inputs = (first[-1], second[-1]), (first[0], second[0])
    return (
        _is_row(labels[0])
        and _is_same_made(*labels, DEEP)
        and (_is_made_of(*inputs) or _is_made_of(*reversed(inputs)))
    )


def _example(story: Story, loader: Value) -> list[Value] | None:
    """Return the parts of an example of a dataset of the project's, which has a label."""
    if not isinstance(dataset_of(loader), Instance):
        return None
    value = next((x.value for x in story.execution.examples if x.loader is loader), None)
    is_pair = isinstance(value, Items) and value.is_whole and len(value.members) > 1
    return value.members if isinstance(value, Items) and is_pair else None


def _is_row(value: Value) -> bool:
    """Tell whether a value is taken by the index of the example."""
    return any(isinstance(v, Unknown) and v.name == INDEX for v in origins(value, 400))


def _is_made_of(value: Value, row: Value) -> bool:
    """Tell whether one input is the other, or was made from it."""
    return _is_row(row) and any(_is_same_made(v, row, DEEP) for v in origins(value, 60))


def _is_same_made(one: Value, other: Value, depth: int) -> bool:
    """Tell whether two values were certainly computed alike from the same."""
    if type(one) is not type(other) or depth == 0:
        return False
    if isinstance(one, Unknown) and isinstance(other, Unknown):
        return one is other or one.name == other.name == INDEX
    if isinstance(one, Known) and isinstance(other, Known):
        return one.value == other.value
    if isinstance(one, External) and isinstance(other, External):
        return one.name == other.name
    if isinstance(one, Part) and isinstance(other, Part):
        return one.key == other.key and _is_same_made(one.of, other.of, depth - 1)
    is_list = isinstance(one, Items)
    if isinstance(one, Result) and isinstance(other, Result):
        is_alike = one.maker == other.maker and one.kwargs.keys() == other.kwargs.keys()
        if not is_alike or not _is_repeatable(one):
            return False
    elif not is_list:
        return one is other
    ours, theirs = one.inputs, other.inputs
    pairs = zip(ours, theirs, strict=False)
    return len(ours) == len(theirs) and all(_is_same_made(a, b, depth - 1) for a, b in pairs)


def _is_repeatable(value: Result) -> bool:
    """Tell whether a call gives the same of the same: it draws nothing, or from a known seed."""
    generator = generator_behind(value)
    if generator is not None:
        return bool(value.args) and all(isinstance(v, Known) for v in value.args)
    given = generator_behind(value.receiver) or generator_behind(value.kwargs.get("generator"))
    if is_draw(value) and given is None:
        return False
    return value.receiver is not None or value.maker.startswith(SURE)


SELECTS = ("randperm", "permutation", "random_split", "train_test_split")
SEEDED_BY = frozenset({"generator", "random_state"})


def overlap(story: Story, one: Value, other: Value) -> str:
    """Say why two loaders certainly share rows, though each reads a part; empty where they may not.

    Two parts that begin, or end, at the same row overlap; so do parts of two random orders.
    """
    parts = [_selection(dataset_of(loader)) for loader in (one, other)]
    if parts[0] is None or parts[1] is None:
        return ""
    if _are_at_one_end(parts[0], parts[1]):
        return "both are cut from the same end"
    first, second = (_drawn_order(d) for d in map(dataset_of, (one, other)))
    if first is None or second is None or first is second:
        return ""
    is_alike = first.site is not None and second.site is not None and (
        first.site.node is second.site.node or _is_of_same(first, second)
    )  # fmt: skip
    return "each split draws its own order" if is_alike and not _is_seeded(story) else ""


def _selection(dataset: Value | None) -> Value | None:
    """Return what says which rows a dataset has."""
    if isinstance(dataset, Result):
        last = dataset.maker.rsplit(".", 1)[-1]
        if last == "Subset" and len(dataset.args) > 1:
            return dataset.args[1]
        return dataset.args[0] if last == "TensorDataset" and dataset.args else None
    return dataset


def _are_at_one_end(one: Value, other: Value) -> bool:
    first, second = _slice(one), _slice(other)
    if first is None or second is None or first[0] is not second[0]:
        return False
    return any(_is_open(first[i]) and _is_open(second[i]) for i in (1, 2))


def _slice(value: Value) -> tuple[Value, Value, Value] | None:
    """Return what a value is a slice of, with its bounds, where nothing else was done to it."""
    key = value.args[1] if isinstance(value, Result) and value.maker == "operator.getitem" else None
    is_slice = isinstance(key, Result) and key.maker == "builtins.slice" and len(key.args) == 3
    if not isinstance(value, Result) or not isinstance(key, Result) or not is_slice:
        return None
    is_whole = isinstance(key.args[2], Known) and key.args[2].value is None
    return (value.args[0], key.args[0], key.args[1]) if is_whole else None


def _is_open(bound: Value) -> bool:
    return isinstance(bound, Known) and bound.value in (None, 0)


def _drawn_order(dataset: Value | None) -> Result | None:
    """Return the one random order by which the rows of a dataset are chosen."""
    held = list(dataset.fields.values()) if isinstance(dataset, Instance) else [dataset]
    found = {
        id(v): v
        for value in held
        if value is not None
        for v in origins(value, 200)
        if isinstance(v, Result) and v.maker.rsplit(".", 1)[-1] in SELECTS
    }
    [*orders] = found.values()
    is_free = len(orders) == 1 and not SEEDED_BY & orders[0].kwargs.keys()
    return orders[0] if is_free and generator_behind(orders[0].receiver) is None else None


def _is_of_same(first: Result, second: Result) -> bool:
    is_pair = first.maker == second.maker and bool(first.args) and bool(second.args)
    return is_pair and first.args[0] is second.args[0]


def _is_seeded(story: Story) -> bool:
    """Tell whether a seed is set more than once, so that two orders may be the same."""
    seeds = [e.name for e in story.events if e.name.rsplit(".", 1)[-1] in SEEDS]
    return len(seeds) > len(set(seeds))
