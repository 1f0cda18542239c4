"""What is done to an input between the data it is taken from and the model that is given it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Instance,
    Items,
    Known,
    Part,
    Result,
    Unknown,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.contents import whole_tensor
from traindx.analysis.program.training.data import batch_part, is_draw, is_index, is_stored_item
from traindx.analysis.program.training.operations import Operation, operation_of
from traindx.analysis.program.training.shapes import shape_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

POINTWISE = frozenset({"log", "log1p", "log2", "log10", "exp", "sqrt", "tanh", "sigmoid", "square"})
ARITHMETIC = frozenset({"add", "sub", "mul", "div", "pow"})
STATISTICS = frozenset({"mean", "std", "var", "max", "min", "amax", "amin", "median", "quantile",
                        "percentile", "nanmean", "norm"})  # fmt: skip
BOUNDS = frozenset({"clamp", "clamp_min", "clip", "maximum"})
DEPTH = 40  # steps from a model back to the data
DIGITS = 6  # of a number that two places have in common


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """What scales, shifts or disturbs an input, in order, and what it is taken from.

    `is_known` is False where a step is out of sight or decided at run time.
    """

    scaling: tuple[str, ...]
    others: tuple[str, ...]
    noise: tuple[Value, ...]
    source: Value
    is_known: bool


def preprocessing_of(story: Story, value: Value, *, into_dataset: bool = True) -> Preprocessing:
    """Follow an input back to the data that it is taken from, or to the batch of its loop."""
    scaling: list[str] = []
    others: list[str] = []
    noise: list[Value] = []
    for _ in range(DEPTH):
        value = whole_tensor(value)
        value = whole_tensor(batch_part(story, value)) if into_dataset else value
        if isinstance(value, Items) and value.members and not value.is_whole:
            value = value.members[0]  # one turn of a comprehension stands for all
        if is_source(value):
            return _found(scaling, others, noise, value, is_known=True)
        operation = operation_of(value)
        step = None if operation is None else _step(story, operation)
        if operation is None or step is None:
            break
        inner, kind, text = step
        if kind == "noise":
            noise.append(value)
        elif kind == "scale":
            scaling.append(text)
        elif kind == "other":
            others.append(text)
        value = inner
    return _found(scaling, others, noise, value, is_known=False)


def _found(
    scaling: list[str], others: list[str], noise: list[Value], source: Value, *, is_known: bool
) -> Preprocessing:
    """Turn what was met on the way back into the order in which it is done."""
    return Preprocessing(
        tuple(scaling[::-1]), tuple(others[::-1]), tuple(noise[::-1]), source, is_known
    )


def is_source(value: Value) -> bool:
    """Tell whether a value is data that come from out of sight: of a batch, of a dataset."""
    if isinstance(value, Unknown) or is_stored_item(value) or _is_window(value):
        return True
    batch = value.of if isinstance(value, Part) else value
    return isinstance(batch, Result) and batch.maker == "builtins.next"


def _is_window(value: Value) -> bool:
    """Tell whether a value is a batch that is cut out by hand: `data[:, i : i + n]`."""
    if not isinstance(value, Result) or value.maker != "operator.getitem":
        return False
    keys = (value.args[1], *value.args[1].inputs)
    slices = (k for k in keys if isinstance(k, Result) and k.maker == "builtins.slice")
    return any(not all(isinstance(b, Known) for b in k.args[:2]) for k in slices)


def _step(story: Story, operation: Operation) -> tuple[Value, str, str] | None:
    """Return what an operation was done to, of which kind it is, and how it is written down."""
    if not operation.operands:
        return None
    name = operation.name
    if name in POINTWISE and len(operation.operands) == 1:
        return operation.operands[0], "scale", name
    if name in ARITHMETIC and len(operation.operands) == 2:
        return _arithmetic(story, operation)
    if name == "()" or name.startswith("recursion"):
        return None
    return operation.operands[0], "other", name


def _arithmetic(story: Story, operation: Operation) -> tuple[Value, str, str] | None:
    data = [v for v in operation.operands if not isinstance(v, Known) and _is_data(story, v)]
    if not data:  # statistics along an example itself, and those of all of them
        data = [v for v in operation.operands if any(is_index(o) for o in origins(v, 400))]
    if len(data) != 1:
        return None
    inner = data[0]
    other = next(v for v in operation.operands if v is not inner)
    if _is_noise(other):
        return inner, "noise", ""
    is_first = operation.operands[0] is inner
    return inner, "scale", _written(operation.name, constant(other), is_first=is_first)


def _is_data(story: Story, value: Value) -> bool:
    """Tell whether a value is made of data, and not only shaped like them."""
    if _is_noise(value) or is_statistic(value):
        return False
    found = (batch_part(story, v) for v in origins(value, 400))
    return any(is_source(v) for v in found)


def is_statistic(value: Value, depth: int = 12) -> bool:
    """Tell whether a value is a statistic of data: a mean, a deviation, a largest value."""
    inner = whole_tensor(value)
    if isinstance(inner, Part) and isinstance(inner.key, int) and depth:
        return is_statistic(inner.of, depth - 1)
    operation = operation_of(inner)
    if operation is None or depth == 0 or not operation.operands:
        return False
    if operation.name.rsplit(".", 1)[-1] in STATISTICS:
        return True
    is_plain = all(isinstance(v, Known) for v in operation.operands[1:])
    is_bound = operation.name in BOUNDS and is_plain
    is_passed = (
        is_bound or operation.name == "getitem" or (operation.name in ARITHMETIC and is_plain)
    )
    return (is_passed or operation.name == "sqrt") and is_statistic(
        operation.operands[0], depth - 1
    )


def _is_noise(value: Value, depth: int = 8) -> bool:
    """Tell whether a value is random itself: drawn, or scaled from what was."""
    inner = whole_tensor(value)
    if is_draw(inner):
        return True
    operation = operation_of(inner)
    if operation is None or depth == 0 or operation.name not in ARITHMETIC | {"clamp", "neg"}:
        return False
    return any(_is_noise(v, depth - 1) for v in operation.operands)


def _written(name: str, number: object, *, is_first: bool) -> str:
    """Write a step so that the same in another form is the same."""
    if not isinstance(number, (int, float)) or isinstance(number, bool):
        return f"{name} a statistic"
    if name == "sub" and is_first:
        return f"+ {round(-float(number), DIGITS):g}"
    if name == "div" and is_first and number:
        return f"* {round(1 / float(number), DIGITS):g}"
    sign = {"add": "+", "mul": "*"}.get(name, name if is_first else f"r{name}")
    return f"{sign} {round(float(number), DIGITS):g}"


def statistics_of_all(value: Value, depth: int = 12) -> Value | None:
    """Return the statistic of all examples by which data are scaled, on the way to a value.

    Of a dataset, by which what it keeps is scaled.
    """
    if isinstance(value, Instance) or (isinstance(value, Result) and _is_dataset(value)):
        kept = value.fields.values() if isinstance(value, Instance) else value.args
        found = (statistics_of_all(v, depth - 1) for v in kept if isinstance(v, Result))
        return next((v for v in found if v is not None), None) if depth else None
    for _ in range(depth):
        value = whole_tensor(value)
        operation = operation_of(value)
        if (
            operation is None
            or operation.name not in ("sub", "div")
            or len(operation.operands) != 2
        ):
            return None
        inner, by = operation.operands
        if _is_over_examples(by, inner):
            return by
        value = inner
    return None


def _is_dataset(value: Result) -> bool:
    return value.maker.rsplit(".", 1)[-1] == "TensorDataset"


def _is_over_examples(value: Value, data: Value) -> bool:
    """Tell whether a value is a mean, deviation or extreme along the examples of some data."""
    for found in origins(value, 30):
        operation = operation_of(found)
        if operation is None or operation.name.rsplit(".", 1)[-1] not in STATISTICS:
            continue
        given = operation.settings.get("axis") or operation.settings.get("dim")
        if given is None and len(operation.operands) > 1:
            given = operation.operands[1]
        root = whole_tensor(operation.operands[0])
        along = constant(given) == 0 if given is not None else _is_series(root)
        return along and any(v is root for v in origins(data, 60))
    return False


def _is_series(data: Value) -> bool:
    """Tell whether one number of all values is one of all examples, and not of all pixels."""
    if isinstance(data, Result) and data.maker.startswith("pandas."):
        return True  # whose statistics are by column
    shape = shape_of(data)
    return shape is not None and len(shape) == 1
