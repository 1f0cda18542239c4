"""The shape of a tensor, as far as the source shows it.

A shape is a tuple of sizes, None for a size that is not known; where the number of dimensions is
not known, there is no shape, but the last size may still be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.examples import EXAMPLE, INDEX
from traindx.analysis.program.execution.values import (
    Choice,
    External,
    Items,
    Known,
    Part,
    Result,
    Unknown,
    Value,
    constant,
    origins,
)
from traindx.analysis.program.training.loaders import dataset_of
from traindx.analysis.program.training.operations import Operation, operation_name, operation_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

Shape = tuple[int | None, ...]
DEEP = 40
FACTORIES = frozenset({"randn", "rand", "zeros", "ones", "empty", "new_zeros", "new_ones"})
# the same numbers of dimensions and sizes
SAME_SHAPE = frozenset(
    {"to", "float", "double", "half", "bfloat16", "cuda", "cpu", "clone", "detach", "contiguous",
     "relu", "tanh", "sigmoid", "gelu", "silu", "softplus", "exp", "log", "abs", "neg", "dropout",
     "identity", "clamp", "sqrt", "long", "int", "bool", "softmax", "log_softmax", "batch_norm",
     "layer_norm", "elu", "leaky_relu", "round", "sign", "requires_grad", "type", "from_numpy",
     "astype", "as_tensor", "square", "zeros_like", "ones_like", "randn_like", "rand_like",
     "logsigmoid", "hardtanh", "selu", "numpy"}
)  # fmt: skip
ARITHMETIC = frozenset({"add", "sub", "mul", "div", "pow", "eq", "gt", "lt", "ge", "le", "ne"})
REDUCTIONS = frozenset({"sum", "mean", "amax", "amin", "prod", "std", "var", "argmax", "argmin",
                        "logsumexp", "norm"})  # fmt: skip

RESHAPES = frozenset({".unsqueeze_", ".squeeze_", ".resize_", ".t_", ".transpose_", ".set_"})


def shape_of(value: Value | None, depth: int = DEEP) -> Shape | None:
    """Return the shape of a tensor; None where its number of dimensions is not known."""
    if value is None or depth == 0:
        return None
    if isinstance(value, Choice):
        found = {shape_of(o, depth - 1) for o in value.options}
        return found.pop() if len(found) == 1 else None
    if isinstance(value, Known):
        return () if isinstance(value.value, (int, float)) else None
    if isinstance(value, Part):
        return _of_part(value, depth)
    operation = operation_of(value)
    if operation is None or not isinstance(value, Result):
        return None
    rule = _RULES.get(operation.name)
    if rule is not None:
        return rule(operation, depth)
    if operation.name.removeprefix("numpy.") in SAME_SHAPE and operation.operands:
        return shape_of(operation.operands[0], depth - 1)
    if operation.name == "to_numpy" and _is_column_of_table(operation.operands[0]):
        return (None,)
    return (None, None) if operation.name == "numpy.column_stack" else None


def _is_column_of_table(value: Value) -> bool:
    return isinstance(value, Part) and isinstance(value.key, str)


def last_size(value: Value | None, depth: int = DEEP) -> int | None:
    """Return the size of the last dimension of a tensor, of two dimensions or more."""
    shape = shape_of(value, depth)
    if shape is not None:
        return shape[-1] if len(shape) > 1 else None
    operation = operation_of(value)
    if operation is None or not operation.operands:
        return None
    if operation.name == "linear" and "out_features" in operation.settings:
        units = constant(operation.settings["out_features"])
        return units if isinstance(units, int) else None
    if operation.name in SAME_SHAPE:
        return last_size(operation.operands[0], depth - 1)
    if operation.name == "cat" and operation.operands[1:] == () and not operation.settings:
        held = operation.operands[0].inputs if isinstance(operation.operands[0], Items) else ()
        sizes = {last_size(v, depth - 1) for v in held}
        return sizes.pop() if len(sizes) == 1 else None
    return None


def made_by_layer(value: Value | None) -> Result | None:
    """Return the linear layer that a tensor is the output of, in its own shape."""
    for _ in range(DEEP):
        operation = operation_of(value)
        if operation is None or not isinstance(value, Result):
            return None
        if operation.name == "linear" and isinstance(value.receiver, Result):
            return value.receiver
        if operation.name not in SAME_SHAPE or not operation.operands:
            return None
        value = operation.operands[0]
    return None


def is_reshaped(story: Story, value: Value) -> bool:
    """Tell whether a tensor, or one that it was made from, gets another shape in place."""
    reshaped = {id(e.receiver) for e in story.index.named(*RESHAPES)}
    return bool(reshaped) and any(id(v) in reshaped for v in origins(value))


def _of_part(value: Part, depth: int) -> Shape | None:
    owner = value.of
    if value.key in ("values", "data", "T", "mT"):
        if value.key == "values" and isinstance(owner, Part) and isinstance(owner.key, str):
            return (None,)  # a column of a table
        if value.key == "values":  # of `x.max(1)`
            return shape_of(owner, depth - 1)
        shape = shape_of(owner, depth - 1)
        return shape if value.key == "data" or shape is None else shape[::-1]
    if isinstance(value.key, int) and isinstance(owner, Result):
        if owner.maker == "builtins.next":
            return _of_batch(owner, value.key, depth)
        if operation_name(owner.maker) in PIECES:
            return _of_piece(owner, depth)
        if operation_name(owner.maker) in RANKED:
            return shape_of(owner, depth - 1)  # values, and where they were
        if owner.maker.startswith("sklearn."):
            return _of_table(owner, value.key, depth)
        shape = shape_of(owner, depth - 1)
        return shape[1:] if shape else None
    return None


def _of_batch(batch: Result, key: int, depth: int) -> Shape | None:
    """The shape of a part of a batch of a loader of tensors."""
    loader = batch.args[0] if batch.args else None
    if not isinstance(loader, Result) or not loader.maker.endswith("DataLoader"):
        return None
    example = loader.fields.get(EXAMPLE)
    if example is not None:
        row = shape_of(example.fields.get(key), depth - 1)
        return None if row is None else (None, *row)
    given = dataset_of(loader)
    dataset = None if given is None else _undivided(given)
    is_plain = isinstance(dataset, Result) and dataset.maker.endswith("TensorDataset")
    if not is_plain or not isinstance(dataset, Result) or key >= len(dataset.args):
        return None
    whole = shape_of(dataset.args[key], depth - 1)
    return (None, *whole[1:]) if whole else None


def _undivided(dataset: Value) -> Value:
    """Return the whole that a part of a data set is of: of `random_split`, of a `Subset`."""
    while True:
        of = dataset.of if isinstance(dataset, Part) else dataset
        maker = of.maker.rsplit(".", 1)[-1] if isinstance(of, Result) else ""
        if maker not in ("random_split", "Subset") or not isinstance(of, Result) or not of.args:
            return dataset
        dataset = of.args[0]


RANKED = frozenset({"max", "min", "median", "mode", "kthvalue"})
PIECES = frozenset({"split", "chunk", "tensor_split"})


def _of_piece(whole: Result, depth: int) -> Shape | None:
    """One of the pieces that a tensor is split into; pieces of size 1 along an axis are columns."""
    operation = operation_of(whole)
    if operation is None or not operation.operands:
        return None
    given = operation.settings.get("dim", next(iter(operation.operands[2:]), Known(0)))
    axis, shape = constant(given), shape_of(operation.operands[0], depth - 1)
    if shape is None and axis == 1 and _is_one(operation):
        return (None, 1)  # of two dimensions, as what is split into columns is
    if shape is None or not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return None
    sizes = list(shape)
    sizes[axis] = 1 if _is_one(operation) else None
    return tuple(sizes)


def _is_one(operation: Operation) -> bool:
    is_split = operation.name == "split" and len(operation.operands) > 1
    return is_split and constant(operation.operands[1]) == 1


def _of_table(made: Result, key: int, depth: int) -> Shape | None:
    """What sklearn loads, makes or splits: tables, and one target for each row."""
    name = made.maker.rsplit(".", 1)[-1]
    if name == "train_test_split" and key < 2 * len(made.args):
        shape = shape_of(made.args[key // 2], depth - 1)
        return None if shape is None else (None, *shape[1:])
    is_loaded = name.startswith("load_") and constant(made.kwargs.get("return_X_y")) is True
    is_made = name in ("make_regression", "make_classification", "make_moons", "make_blobs")
    is_flat = "n_targets" not in made.kwargs and (is_loaded or is_made)
    return {0: (None, None), 1: (None,)}.get(key) if is_flat and name != "load_linnerud" else None


def is_row_of_batch(value: Value | None, depth: int = 8) -> bool:
    """Tell whether a tensor has one dimension, or was made element by element with one that has.

    What else took part either has one dimension too, or was broadcast already.
    """
    shape = shape_of(value)
    if shape is not None:
        return len(shape) == 1 and shape != (1,)
    operation = operation_of(value)
    if operation is None or depth == 0 or operation.name not in ("add", "sub", "mul", "div"):
        return False
    return any(is_row_of_batch(v, depth - 1) for v in operation.operands)


def _joined(operation: Operation, depth: int) -> Shape | None:
    """`cat` and `stack` of tensors that are in sight."""
    held = operation.operands[0] if operation.operands else None
    if not isinstance(held, Items) or not held.members:
        return None
    shapes = {shape_of(v, depth - 1) for v in held.members}
    ranks = {None if s is None else len(s) for s in shapes}
    given = operation.settings.get("dim", next(iter(operation.operands[1:]), Known(0)))
    axis, shape = constant(given), shapes.pop()
    if len(ranks) != 1 or shape is None or not isinstance(axis, int):
        return None
    if operation.name == "stack":
        axis %= len(shape) + 1
        return (*shape[:axis], len(held.members) if held.is_whole else None, *shape[axis:])
    if shapes or not -len(shape) <= axis < len(shape):
        return None
    sizes = list(shape)
    sizes[axis] = None
    return tuple(sizes)


def _maximum(operation: Operation, depth: int) -> Shape | None:
    """`x.max(1)` gives values and indices; of a network's scores, one for each row."""
    shape = _reduced(operation, depth)
    given = (*operation.operands[1:], *operation.settings.values())
    is_plain = len(given) == 1 and "keepdim" not in operation.settings
    if shape is None and is_plain and constant(given[0]) == 1:
        return (None,) if last_size(operation.operands[0], depth - 1) is not None else None
    return shape


def _gathered(operation: Operation, depth: int) -> Shape | None:
    """`scores.gather(1, index)` has the shape of its index: of a network's scores, a column."""
    if len(operation.operands) < 3:
        return None
    index = operation.operands[2]
    shape = shape_of(index, depth - 1)
    if shape is not None or constant(operation.operands[1]) != 1:
        return shape
    made = operation_of(index)
    is_column = made is not None and made.name == "unsqueeze" and len(made.operands) == 2
    if not is_column or made is None or constant(made.operands[1]) not in (1, -1):
        return None
    return (None, 1) if last_size(operation.operands[0], depth - 1) is not None else None


def _factory(operation: Operation, depth: int) -> Shape | None:
    sides = list(operation.operands)
    if sides and isinstance(sides[0], Items):
        sides = sides[0].members if sides[0].is_whole else []
    if not sides or any(isinstance(s, Result) and s.maker == "operator.spread" for s in sides):
        return None
    return tuple(_size(s) for s in sides)


# draws of numpy: at which position, after the generator, the size stands
DRAWS = {"normal": 2, "uniform": 2, "integers": 2, "exponential": 1, "poisson": 1, "binomial": 2,
         "standard_normal": 0, "beta": 2, "gamma": 2, "laplace": 2}  # fmt: skip


def _drawn(operation: Operation, depth: int) -> Shape | None:
    """What a generator of numpy draws: as many numbers as its size says."""
    place = DRAWS[operation.name] + 1
    given = operation.settings.get("size", next(iter(operation.operands[place : place + 1]), None))
    if isinstance(given, Items):
        return tuple(_size(v) for v in given.members) if given.is_whole else None
    number = _size(given) if given is not None else None
    return None if number is None else (number,)


def _size(value: Value) -> int | None:
    known = constant(value)
    return known if isinstance(known, int) else None


def _tensor(operation: Operation, depth: int) -> Shape | None:
    given = operation.operands[0] if operation.operands else None
    if isinstance(given, Items):
        if not given.is_whole or not given.fields:
            return None
        inner = shape_of(given.members[0], depth - 1)
        if isinstance(given.members[0], Items):
            inner = _tensor(Operation("tensor", (given.members[0],), {}), depth - 1)
        return None if inner is None else (len(given.fields), *inner)
    return None if isinstance(given, Known) else shape_of(given, depth - 1)


def _linear(operation: Operation, depth: int) -> Shape | None:
    shape = shape_of(operation.operands[0], depth - 1) if operation.operands else None
    units = constant(operation.settings.get("out_features"))
    return (*shape[:-1], units if isinstance(units, int) else None) if shape else None


def _matmul(operation: Operation, depth: int) -> Shape | None:
    if len(operation.operands) != 2:
        return None
    first, second = (shape_of(v, depth - 1) for v in operation.operands)
    if first is None or second is None or len(first) < 2 or len(second) not in (1, 2):
        return None
    return first[:-1] if len(second) == 1 else (*first[:-1], second[-1])


def _broadcast(operation: Operation, depth: int) -> Shape | None:
    shapes = [shape_of(v, depth - 1) for v in operation.operands]
    if not shapes or any(s is None for s in shapes):
        return None
    known = [s for s in shapes if s is not None]
    width = max(len(s) for s in known)
    padded = [(1,) * (width - len(s)) + s for s in known]
    return tuple(_wider([s[i] for s in padded]) for i in range(width))


def _wider(sizes: list[int | None]) -> int | None:
    others = {s for s in sizes if s != 1}
    return 1 if not others else others.pop() if len(others) == 1 else None


def _reduced(operation: Operation, depth: int) -> Shape | None:
    if not operation.operands:
        return None
    settings = operation.settings
    given = settings.get("dim", settings.get("axis", next(iter(operation.operands[1:]), None)))
    if given is None:
        return ()
    axis = constant(given)
    shape = shape_of(operation.operands[0], depth - 1)
    if shape is None or not isinstance(axis, int) or not -len(shape) <= axis < len(shape):
        return None
    kept = constant(operation.settings.get("keepdim", next(iter(operation.operands[2:]), None)))
    axis %= len(shape)
    return (*shape[:axis], *([1] if kept is True else []), *shape[axis + 1 :])


def _unsqueezed(operation: Operation, depth: int) -> Shape | None:
    shape, axis = _with_axis(operation, depth)
    if shape is None or axis is None:
        return None
    axis = axis % (len(shape) + 1)
    return (*shape[:axis], 1, *shape[axis:])


def _squeezed(operation: Operation, depth: int) -> Shape | None:
    shape, axis = _with_axis(operation, depth)
    if shape is None:
        return None
    if axis is None:
        return tuple(s for s in shape if s != 1) if None not in shape else None
    if not -len(shape) <= axis < len(shape) or shape[axis] is None:
        return None
    axis %= len(shape)
    return (*shape[:axis], *shape[axis + 1 :]) if shape[axis] == 1 else shape


def _with_axis(operation: Operation, depth: int) -> tuple[Shape | None, int | None]:
    given = operation.settings.get("dim", next(iter(operation.operands[1:]), None))
    axis = constant(given) if given is not None else None
    shape = shape_of(operation.operands[0], depth - 1) if operation.operands else None
    if given is not None and not isinstance(axis, int):
        return None, None
    return shape, axis if isinstance(axis, int) else None


def _viewed(operation: Operation, depth: int) -> Shape | None:
    sides = list(operation.operands[1:])
    if len(sides) == 1 and isinstance(sides[0], Items):
        sides = sides[0].members
    if not sides or not all(isinstance(s, Known) or _is_size(s) for s in sides):
        return None
    return tuple(None if _size(s) == -1 else _size(s) for s in sides)


def _is_size(value: Value) -> bool:
    """Tell whether a value is one size and not several: `x.size(0)`, `len(x)`."""
    operation = operation_of(value)
    return operation is not None and operation.name in ("size", "builtins.len", "mul", "floordiv")


def _flattened(operation: Operation, depth: int) -> Shape | None:
    start = constant(operation.settings.get("start_dim", next(iter(operation.operands[1:]), None)))
    end = operation.settings.get("end_dim", next(iter(operation.operands[2:]), None))
    if end is not None:
        return None
    first = start if isinstance(start, int) else 0
    return (None,) * (first + 1) if 0 <= first <= 1 else None


def _transposed(operation: Operation, depth: int) -> Shape | None:
    shape = shape_of(operation.operands[0], depth - 1) if operation.operands else None
    is_flipped = operation.name == "t" or (shape is not None and len(shape) == 2)
    return shape[::-1] if shape is not None and is_flipped else None


def _item(operation: Operation, depth: int) -> Shape | None:
    if len(operation.operands) < 2:
        return None
    if isinstance(operation.operands[0], External) and operation.operands[0].name == "numpy.c_":
        return (None, None)
    shape = shape_of(operation.operands[0], depth - 1)
    key = operation.operands[1]
    keys = key.members if isinstance(key, Items) and key.kind == "tuple" else [key]
    found: list[int | None] = []
    rest = list(shape) if shape is not None else None
    if rest is None:
        return None
    for one in keys:
        if isinstance(one, Known) and one.value is None:
            found.append(1)
            continue
        if not rest:
            return None
        size = rest.pop(0)
        if isinstance(one, Known) and isinstance(one.value, int):
            continue
        if isinstance(one, Unknown) and one.name == INDEX:
            continue
        if len(keys) == 1 and _are_indices(one, depth):
            found.append(None)
            continue
        if not isinstance(one, Result) or one.maker != "builtins.slice":
            return None
        found.append(_sliced(one, size))
    return (*found, *rest)


def _are_indices(key: Value, depth: int) -> bool:
    """Tell whether a key is a row of positions: a permutation, a piece of one, a part's indices."""
    if isinstance(key, Part) and key.key == "indices":
        return True
    over = key.args[0] if isinstance(key, Result) and key.maker == "builtins.next" else key
    operation = operation_of(over)
    if operation is not None and operation.name in PIECES:
        return _are_indices(operation.operands[0], depth - 1) if depth else False
    if isinstance(over, Result) and over.maker == "operator.getitem":
        return _are_indices(over.args[0], depth - 1) if depth else False
    return isinstance(over, Result) and over.maker in ("torch.randperm", "torch.arange")


def _sliced(key: Result, size: int | None) -> int | None:
    if len(key.args) < 2:  # `slice(n)` and slices of a length that is not known
        end = constant(key.args[0]) if key.args else None
        return end if isinstance(end, int) and end > 0 else None
    low, high = (constant(v) for v in key.args[:2])
    if low is None and high is None and all(isinstance(v, Known) for v in key.args[:2]):
        return size
    is_known = isinstance(low, int) and isinstance(high, int) and 0 <= low < high
    return high - low if is_known and isinstance(low, int) and isinstance(high, int) else None


_RULES: dict[str, Callable[[Operation, int], Shape | None]] = {
    **dict.fromkeys(FACTORIES, _factory),
    **dict.fromkeys(ARITHMETIC, _broadcast),
    **dict.fromkeys(REDUCTIONS, _reduced),
    **dict.fromkeys(DRAWS, _drawn),
    "max": _maximum,
    "min": _maximum,
    "cat": _joined,
    "stack": _joined,
    "tensor": _tensor,
    "linear": _linear,
    "matmul": _matmul,
    "mv": lambda o, d: (None,),
    "unsqueeze": _unsqueezed,
    "squeeze": _squeezed,
    "view": _viewed,
    "reshape": _viewed,
    "flatten": _flattened,
    "ravel": lambda o, d: (None,),
    "t": _transposed,
    "transpose": _transposed,
    "getitem": _item,
    "gather": _gathered,
}
