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
from traindx.analysis.program.training.data import is_draw
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
