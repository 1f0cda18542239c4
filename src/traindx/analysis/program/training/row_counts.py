"""How many rows there are in what data are made of: public sets, splits, slices, permutations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.facts import sample_sets
from traindx.analysis.program.training.operations import operation_of

if TYPE_CHECKING:
    Count = Callable[[Value | None], int | float | None]

PUBLIC = {
    "MNIST": (60000, 10000), "FashionMNIST": (60000, 10000), "KMNIST": (60000, 10000),
    "CIFAR10": (50000, 10000), "CIFAR100": (50000, 10000),
}  # fmt: skip
# what has as many rows as what it is made of
SAME_ROWS = frozenset(
    {"tensor", "as_tensor", "from_numpy", "FloatTensor", "LongTensor", "array", "asarray",
     "astype", "float", "long", "int", "double", "bool", "to", "cuda", "cpu", "clone", "copy",
     "detach", "numpy", "contiguous", "requires_grad_", "sorted", "list", "tuple", "reversed",
     "enumerate", "to_numpy", "log1p", "log", "exp", "sqrt", "clip", "clamp", "abs", "sin", "cos",
     "fillna", "reset_index", "sort_values", "nan_to_num", "type", "ascontiguousarray",
     "tolist", "permutation", "permuted", "zeros_like", "ones_like", "randn_like", "add", "sub",
     "mul", "div", "truediv", "pow", "neg", "tqdm"}
)  # fmt: skip
WITHIN = frozenset({"add", "sub", "mul", "div", "truediv", "pow"})  # of two, broadcast
SCALES = frozenset({"transform", "fit_transform"})
COUNTED = frozenset({"randperm", "permutation", "arange", "range"})
JOINED = frozenset({"cat", "concat", "concatenate", "vstack"})
MASKS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "and", "or", "invert", "isin", "isnan",
                   "logical_not", "logical_and", "zeros", "ones", "bool", "rand"})  # fmt: skip
STACKED = frozenset({"stack", "vstack", "array", "tensor", "as_tensor"})


def counted_rows(value: Value | None, rows: Count, number: Count) -> int | None:
    """Return how many rows a value has, by what made it; None where that is not known.

    `rows` counts those of what it is made of, `number` says what a number is.
    """
    if isinstance(value, Part):
        return _of_part(value, rows, number)
    if isinstance(value, Items) and value.over is not None:
        return _whole(rows(value.over))
    if not isinstance(value, Result):
        return None
    last = value.maker.rsplit(".", 1)[-1]
    given = ((value.receiver,) if value.receiver is not None else ()) + value.args
    if value.maker.startswith("torchvision.datasets.") and last in PUBLIC:
        return _public(value, last)
    if value.maker == "operator.getitem" and len(value.args) == 2:
        return _picked(*value.args, rows, number)
    if last in COUNTED and value.args and (n := number(value.args[-1])) is not None:
        return _counted(value, last, n, number)
    if value.maker == "builtins.zip" and value.args:
        parts = [_whole(rows(v)) for v in value.args]
        return min((p for p in parts if p is not None), default=None) if None not in parts else None
    if last in SCALES and value.args:
        return _whole(rows(value.args[0]))
    if last in WITHIN and len(given) == 2:
        return _broadcast([_whole(rows(v)) for v in given])
    if last in (JOINED | STACKED) and not _goes_down(value, last):
        return None
    if last in JOINED and given and isinstance(given[0], Items) and given[0].is_whole:
        parts = [_whole(rows(v)) for v in given[0].members]
        return sum(p for p in parts if p is not None) if None not in parts else None
    first = given[0] if given else None
    if last in SAME_ROWS or (last in STACKED and isinstance(first, Items)):
        return _whole(rows(first))
    return None


def _goes_down(value: Result, last: str) -> bool:
    """Tell whether arrays are put one below the other: along the first dimension."""
    along = value.kwargs.get("axis") or value.kwargs.get("dim")
    is_second = last in ("cat", "concat", "concatenate", "stack") and len(value.args) > 1
    given = value.args[1] if is_second else along
    return given is None or constant(given) == 0


def _whole(found: int | float | None) -> int | None:
    return found if type(found) is int else None


def _public(made: Result, name: str) -> int | None:
    given = made.kwargs.get("train") or (made.args[1] if len(made.args) > 1 else Known(True))
    half = constant(given)
    return PUBLIC[name][0 if half else 1] if isinstance(half, bool) else None


def _of_part(value: Part, rows: Count, number: Count) -> int | None:
    """`load_iris().data`, `.target`, `frame.values`, a side of `train_test_split`."""
    sizes = sample_sets.sizes_of(value.of, value.key)
    if sizes is None and isinstance(value.key, int):
        sizes = sample_sets.pair_sizes(value.of, value.key)
    if sizes is not None:
        return sizes[0]
    if value.key in ("values", "iloc", "loc"):
        return _whole(rows(value.of))
    is_split = isinstance(value.of, Result) and value.of.maker.endswith("train_test_split")
    if not is_split or not isinstance(value.of, Result) or not isinstance(value.key, int):
        return None
    whole = _whole(rows(value.of.args[0])) if value.of.args else None
    return None if whole is None else _side(value.of, value.key % 2, whole, number)


def _side(split: Result, side: int, whole: int, number: Count) -> int | None:
    """Return the rows of the training (0) or test side (1), rounded as scikit-learn does."""
    asked = {k: split.kwargs[k] for k in ("train_size", "test_size") if k in split.kwargs}
    asked = {k: v for k, v in asked.items() if not isinstance(v, Known) or v.value is not None}
    found = {k: number(v) for k, v in asked.items()}
    if None in found.values():
        return None
    test, train = found.get("test_size"), found.get("train_size")
    if test is None and train is None:
        test = 0.25
    tested = math.ceil(test * whole) if isinstance(test, float) else test
    trained = math.floor(train * whole) if isinstance(train, float) else train
    if tested is None and trained is not None:
        tested = whole - trained
    if trained is None and tested is not None:
        trained = whole - tested
    return _whole(trained if side == 0 else tested)


def _picked(data: Value, key: Value, rows: Count, number: Count) -> int | None:
    """`x[a:b]`, `x[order]`: rows by a slice or by a list of positions."""
    if isinstance(key, Items) and key.members and key.kind == "tuple":
        key = key.members[0]
    if isinstance(key, Result) and key.maker == "builtins.slice":
        whole = _whole(rows(data))
        ends = [_end(v, number) for v in (*key.args, Known(None), Known(None))[:3]]
        if whole is None or any(e is False for e in ends):
            return None
        return len(range(whole)[slice(*ends)])
    if _names_columns(key):
        return _whole(rows(data))
    return None if _is_mask(key) else _whole(rows(key))


def _names_columns(key: Value) -> bool:
    """Tell whether columns of a table are picked by their names, which keeps all rows."""
    held = key.members if isinstance(key, Items) else [key]
    return bool(held) and all(isinstance(constant(v), str) for v in held)


def _is_mask(key: Value) -> bool:
    """Tell whether rows are chosen by a truth value for each."""
    operation = operation_of(key)
    name = operation.name if operation is not None else ""
    return name in MASKS or any(o.value is True for o in origins(key, 20) if isinstance(o, Known))


def _end(value: Value, number: Count) -> int | bool | None:
    """Return the end of a slice; None where it is open, False where it is not known."""
    if isinstance(value, Known) and value.value is None:
        return None
    found = number(value)
    return found if type(found) is int else False


def _counted(value: Result, last: str, end: int | float, number: Count) -> int | None:
    """`range(a, b)`, `torch.arange(n)`, `randperm(n)`."""
    given = [number(v) for v in value.args]
    numbers = [n for n in given if type(n) is int]
    if len(numbers) != len(given) or len(given) > 3:
        return None
    return len(range(*numbers)) if last in ("range", "arange") else int(end)


def _broadcast(sizes: list[int | None]) -> int | None:
    """Return the rows of a sum of two, where one of them has rows that are known.

    What has none in sight is a number, or one for each column.
    """
    known = [s for s in sizes if s is not None]
    return max(known) if known else None
