"""What the numbers of a tensor are: probabilities, log-probabilities, raw scores."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from traindx.analysis.program.execution.values import (
    Choice,
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
)
from traindx.analysis.program.training.operations import Operation, operation_of

# the same numbers in another shape, place or type
SAME_NUMBERS = frozenset(
    {"view", "reshape", "squeeze", "unsqueeze", "flatten", "permute", "transpose", "to", "float",
     "double", "half", "contiguous", "clone", "cuda", "cpu", "expand", "getitem", "index_select",
     "gather", "select", "narrow", "t", "type", "type_as", "view_as", "reshape_as", "repeat",
     "masked_select", "requires_grad", "bfloat16", "cat", "stack", "chunk", "split", "unbind",
     "detach", "dropout", "identity", "unflatten", "swapaxes", "rearrange"}
)  # fmt: skip
SCORES = frozenset({"linear", "conv1d", "conv2d", "conv3d", "matmul", "bilinear", "addmm",
                    "einsum", "lazy_linear", "conv_transpose2d"})  # fmt: skip


# all numbers of a tensor, in another shape, place or type
ALL_NUMBERS = frozenset(
    {"view", "reshape", "squeeze", "unsqueeze", "flatten", "permute", "transpose", "to", "float",
     "double", "half", "contiguous", "clone", "cuda", "cpu", "t", "type", "type_as", "view_as",
     "bfloat16", "detach", "long", "int", "tensor", "as_tensor", "from_numpy", "astype", "numpy",
     "pin_memory", "Variable", "LongTensor", "FloatTensor", "stack", "copy", "array", "asarray",
     "to_numpy", "Tensor", "ascontiguousarray", "rearrange", "squeeze_", "unsqueeze_"}
)  # fmt: skip


def whole_tensor(value: Value, depth: int = 30) -> Value:
    """Return the tensor that a value holds all numbers of, in whatever shape, place or type."""
    operation = operation_of(value)
    if depth == 0 or operation is None or not operation.operands:
        return value
    if operation.name.rsplit(".", 1)[-1] not in ALL_NUMBERS:
        return value
    first = operation.operands[0]
    if isinstance(first, Items):
        first = first.members[0] if first.fields else first
    return whole_tensor(first, depth - 1)


class Content(Enum):
    """What the numbers of a tensor are."""

    PROBABILITIES = "softmax"
    LOG_PROBABILITIES = "log_softmax"
    UNIT_INTERVAL = "sigmoid"
    POOLED = "mean or product of probabilities"  # between 0 and 1 as well
    SCORES = "logits"
    POSITIVE = "relu"  # from 0 up
    SYMMETRIC = "tanh"  # between -1 and 1
    UNKNOWN = "unknown"


def same_numbers(value: Value, depth: int = 40) -> Iterator[Value]:
    """Yield where the numbers of a value come from, through what only moves or reshapes them."""
    if depth == 0:
        return
    if isinstance(value, Choice):
        for option in value.options:
            yield from same_numbers(option, depth - 1)
        return
    if isinstance(value, Items) and value.fields:
        for member in value.members:
            yield from same_numbers(member, depth - 1)
        return
    if isinstance(value, Part) and isinstance(value.of, Result):
        is_inside = isinstance(value.key, (int, str)) and value.key not in ("shape", "grad")
        if is_inside and operation_of(value.of) is not None and value.of.maker != "builtins.next":
            yield from same_numbers(value.of, depth - 1)
            return
    operation = operation_of(value)
    if operation is not None and operation.name in SAME_NUMBERS and operation.operands:
        yield from same_numbers(operation.operands[0], depth - 1)
        return
    yield value


def contents(value: Value) -> Iterator[tuple[Content, Value]]:
    """Yield what the numbers of a value are, and what made them so."""
    for found in same_numbers(value):
        yield _content(found), found


def _content(value: Value) -> Content:
    operation = operation_of(value)
    if operation is None:
        return Content.UNKNOWN
    name = operation.name
    if name in ("softmax", "softmax2d") or _is_normalised_exp(operation):
        return Content.PROBABILITIES
    if name == "log_softmax" or _is_log_of_softmax(operation):
        return Content.LOG_PROBABILITIES
    if name == "sigmoid" or _is_logistic(operation):
        return Content.UNIT_INTERVAL
    if name == "exp" and operation.operands:
        inner = {c for c, _ in contents(operation.operands[0])}
        return Content.PROBABILITIES if inner == {Content.LOG_PROBABILITIES} else Content.UNKNOWN
    if _is_mixture(operation):
        return Content.PROBABILITIES
    if _is_pooled(operation):
        return Content.POOLED
    if name in SCORES or (name in ("add", "sub", "mul", "div") and _is_affine(operation)):
        return Content.SCORES
    if name in ("relu", "relu6"):
        return Content.POSITIVE
    return Content.SYMMETRIC if name == "tanh" else Content.UNKNOWN


def _is_mixture(operation: Operation) -> bool:
    """`torch.stack(several).mean(0)`, `(p + q) / 2`: the average of probabilities."""
    first = operation.operands[0] if operation.operands else None
    if operation.name == "mean":
        listed = operation_of(first)
        dim = operation.settings.get("dim") or next(iter(operation.operands[1:]), None)
        is_of_several = listed is not None and listed.name == "stack" and constant(dim) == 0
        is_mixed = first is not None and (is_of_several or _is_along_others(dim, first))
        return is_mixed and _are_probabilities(first)
    if operation.name != "div" or len(operation.operands) != 2:
        return False
    total = operation_of(first)
    if total is None or total.name not in ("add", "sum") or not total.operands:
        return False
    is_listed = total.name == "add" or isinstance(total.operands[0], Items)
    return is_listed and all(_are_probabilities(v) for v in total.operands)


def _is_along_others(dim: Value | None, probabilities: Value) -> bool:
    """Tell whether a mean goes over other axes than the one along which probabilities sum to 1."""
    given = dim.members if isinstance(dim, Items) else [] if dim is None else [dim]
    averaged = [constant(v) for v in given]
    made = [operation_of(found) for _, found in contents(probabilities)]
    axes = [None if o is None else constant(o.argument("dim")) for o in made]
    known = all(isinstance(axis, int) for axis in (*averaged, *axes))
    return known and bool(averaged) and bool(axes) and not set(averaged) & set(axes)


IN_UNIT_INTERVAL = frozenset({Content.PROBABILITIES, Content.UNIT_INTERVAL, Content.POOLED})
# what is between 0 and 1 stays there
STAYS = frozenset(
    {"mean", "max", "min", "amax", "amin", "median", "maximum", "minimum", "max_pool1d",
     "max_pool2d", "avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
     "adaptive_max_pool1d", "adaptive_max_pool2d", "lerp", "upsample", "interpolate",
     "prod", "cumprod", "sqrt", "square"}
)  # fmt: skip
CAPS = {"clamp": ("min", "max"), "clamp_min": ("min",), "clamp_max": ("max",)}


def _is_pooled(operation: Operation) -> bool:
    """Tell whether numbers between 0 and 1 are averaged, multiplied or taken from 1."""
    given = operation.operands
    if operation.name in STAYS:
        tensors = [v for v in given if not isinstance(v, (Known, Items))]
        return bool(tensors) and all(_is_in_unit_interval(v) for v in tensors)
    if operation.name in CAPS and given:
        return _is_in_unit_interval(given[0]) and all(0 <= b <= 1 for b in _caps(operation))
    if operation.name == "where" and len(given) == 3:
        return all(_is_in_unit_interval(v) for v in given[1:])
    if operation.name in ("sum", "matmul"):
        return _is_weighted_mean(operation)
    if operation.name == "mul" and len(given) == 2:
        return all(_is_in_unit_interval(v) for v in given)
    return operation.name == "sub" and constant(given[0]) == 1 and _is_in_unit_interval(given[-1])


def _caps(operation: Operation) -> list[float]:
    given = dict(zip(CAPS[operation.name], operation.operands[1:], strict=False))
    caps = (constant(v) for v in {**given, **operation.settings}.values())
    return [c for c in caps if isinstance(c, (int, float))]


def _is_in_unit_interval(value: Value) -> bool:
    found = {c for c, _ in contents(value)}
    return bool(found) and found <= IN_UNIT_INTERVAL


def _is_weighted_mean(operation: Operation) -> bool:
    """`(softmax(a, -1) * p).sum(-1)`, `softmax(a, -1) @ p`: weights that sum to one."""
    product = operation if operation.name == "matmul" else operation_of(operation.operands[0])
    if product is None or product.name not in ("mul", "matmul") or len(product.operands) != 2:
        return False
    if not all(_is_in_unit_interval(v) for v in product.operands):
        return False
    if operation.name == "matmul":
        return _are_probabilities(product.operands[0])
    summed = operation.settings.get("dim") or next(iter(operation.operands[1:]), None)
    weights = [v for v in product.operands if _are_probabilities(v)]
    return any(_may_be_same_axis(summed, w) for v in weights for _, w in contents(v))


def _may_be_same_axis(summed: Value | None, weights: Value) -> bool:
    """Tell whether a sum goes over the axis that a softmax was taken over, where both are known."""
    made = operation_of(weights)
    normalised = None if made is None else made.argument("dim")
    one, other = constant(summed), constant(normalised)
    if not isinstance(one, int) or not isinstance(other, int):
        return False
    return one == other or (one < 0) is not (other < 0)


def _are_probabilities(value: Value | None) -> bool:
    found = {c for c, _ in contents(value)} if value is not None else set()
    return found == {Content.PROBABILITIES}


def _is_affine(operation: Operation) -> bool:
    """Tell whether scores are scaled by a number or weight, or shifted by one: a bias."""
    if len(operation.operands) != 2:
        return False
    found = [{c for c, _ in contents(v)} == {Content.SCORES} for v in operation.operands]
    others = [v for v, known in zip(operation.operands, found, strict=True) if not known]
    return any(found) and all(_is_number(v) for v in others)


def _is_number(value: Value) -> bool:
    """Tell whether a value is a number, a weight, or a setting of an object."""
    is_weight = isinstance(value, Result) and value.maker.endswith("nn.Parameter")
    return isinstance(value, (Known, Part)) or is_weight


def _is_normalised_exp(operation: Operation) -> bool:
    """`e / e.sum(-1, keepdim=True)` where `e` is an exponential."""
    if operation.name != "div" or len(operation.operands) < 2:
        return False
    above, below = operation.operands[0], operation.operands[1]
    total = operation_of(next(iter(same_numbers(below)), below))
    if total is None or total.name != "sum" or not total.operands:
        return False
    exponential = operation_of(next(iter(same_numbers(above)), above))
    is_same = total.operands[0] is above or _is_same_exp(total.operands[0], above)
    return exponential is not None and exponential.name == "exp" and is_same


def _is_same_exp(first: Value, second: Value) -> bool:
    """Tell whether two exponentials are of the same tensor."""
    one, other = operation_of(first), operation_of(second)
    if one is None or other is None or one.name != "exp" or other.name != "exp":
        return False
    return bool(one.operands and other.operands) and one.operands[0] is other.operands[0]


def _is_log_of_softmax(operation: Operation) -> bool:
    """`torch.log(softmax(x))`, `x - x.logsumexp(-1, keepdim=True)`."""
    if operation.name in ("log", "log_") and operation.operands:
        return any(c is Content.PROBABILITIES for c, _ in contents(_without_epsilon(operation)))
    if operation.name == "sub" and len(operation.operands) > 1:
        below = operation_of(operation.operands[1])
        return (
            below is not None
            and below.name == "logsumexp"
            and (bool(below.operands) and below.operands[0] is operation.operands[0])
        )
    return False


def _without_epsilon(operation: Operation) -> Value:
    """Look through `p + 1e-8` and `p.clamp(min=1e-8)`."""
    value = operation.operands[0]
    inner = operation_of(value)
    if (
        inner is not None
        and inner.operands
        and inner.name in ("add", "clamp", "clamp_min", "maximum")
    ):
        return inner.operands[0]
    return value


def _is_logistic(operation: Operation) -> bool:
    """`1 / (1 + torch.exp(-x))`."""
    if operation.name != "div" or len(operation.operands) < 2:
        return False
    below = operation_of(operation.operands[1])
    if constant(operation.operands[0]) not in (1, 1.0) or below is None or below.name != "add":
        return False
    terms = [operation_of(v) for v in below.operands]
    exponentials = [t for t in terms if t is not None and t.name == "exp" and t.operands]
    return any((n := operation_of(t.operands[0])) is not None and n.name == "neg"
               for t in exponentials)  # fmt: skip
