"""Functions of torch and methods of tensors: what they make of shapes.

A method is the function of its name with the tensor as first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from traindx.analysis.program.shapes import products, rearrangement, windows
from traindx.analysis.program.shapes.sizes import Dim, is_dim, product
from traindx.analysis.program.shapes.spectra import SPECTRA
from traindx.analysis.program.shapes.values import UNKNOWN, Shape, ShapedTensor, SizesOf, Value
from traindx.analysis.program.shapes.windows import Symbols

Operation = Callable[["Arguments", Symbols], Value]

ALIKE = frozenset(
    {"relu", "relu_", "relu6", "leaky_relu", "leaky_relu_", "elu", "elu_", "selu", "celu", "gelu",
     "silu", "mish", "tanh", "tanh_", "sigmoid", "sigmoid_", "softmax", "log_softmax", "softplus",
     "softsign", "hardswish", "hardsigmoid", "hardtanh", "logsigmoid", "dropout", "dropout1d",
     "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout", "exp", "log", "log2", "log10",
     "log1p", "expm1", "sqrt", "rsqrt", "abs", "neg", "sin", "cos", "tan", "asin", "acos", "atan",
     "sinh", "cosh", "erf", "erfinv", "square", "sign", "floor", "ceil", "round", "trunc", "frac",
     "reciprocal", "clamp", "clamp_", "clamp_min", "clamp_max", "clip", "normalize", "contiguous",
     "clone", "detach", "detach_", "to", "float", "half", "double", "bfloat16", "int", "long",
     "bool", "short", "cuda", "cpu", "type", "type_as", "requires_grad_", "zeros_like",
     "ones_like", "rand_like", "randn_like", "empty_like", "full_like", "masked_fill",
     "masked_fill_", "zero_", "fill_", "normal_", "uniform_", "cumsum", "cumprod", "flip", "roll",
     "tril", "triu", "nan_to_num", "logit", "batch_norm", "instance_norm", "group_norm",
     "local_response_norm", "isnan", "isinf", "logical_not", "bernoulli", "gumbel_softmax",
     "scatter", "scatter_", "scatter_add", "scatter_add_", "index_fill", "index_copy",
     "index_add", "checkpoint_identity", "rms_norm", "prelu", "rrelu", "threshold", "softmin",
     "bernoulli_", "copy_", "requires_grad", "data", "argsort", "fliplr", "flipud"}
)  # fmt: skip
ALONG_DIM = frozenset({"softmax", "log_softmax", "cumsum", "cumprod", "softmin"})
BINARY = frozenset(
    {"add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "true_divide", "maximum",
     "minimum", "pow", "fmod", "remainder", "eq", "ne", "lt", "le", "gt", "ge", "logical_and",
     "logical_or", "logical_xor", "atan2", "lerp", "multiply", "subtract", "divide", "addcmul",
     "addcdiv", "rsub", "bitwise_and", "bitwise_or", "floor_divide"}
)  # fmt: skip
REDUCING = frozenset(
    {"mean", "sum", "amax", "amin", "argmax", "argmin", "prod", "std", "var", "logsumexp", "all",
     "any", "nanmean", "nansum"}
)  # fmt: skip
SCALAR = frozenset(
    {"cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss",
     "binary_cross_entropy", "kl_div", "binary_cross_entropy_with_logits"}
)  # fmt: skip
CREATING = frozenset(
    ["zeros", "ones", "rand", "randn", "empty", "new_zeros", "new_ones", "new_empty"]
)


# names of numpy that torch takes for its own
NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}


class Arguments:
    """The arguments of a call, by position or name."""

    def __init__(self, args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
        self.args = args
        self.kwargs = kwargs

    def get(self, position: int, name: str, default: Value = None) -> Value:
        if position < len(self.args):
            return self.args[position]
        for other in (name, NUMPY_NAMES.get(name, name)):
            if other in self.kwargs:
                return self.kwargs[other]
        return default

    def tensor(self, position: int = 0, name: str = "input") -> ShapedTensor:
        value = self.get(position, name)
        return value if isinstance(value, ShapedTensor) else ShapedTensor()

    def rest(self, position: int, name: str) -> tuple[Value, ...]:
        """Return `f(x, 1, 2)`, `f(x, (1, 2))` and `f(x, size=(1, 2))` alike; () if not known."""
        if position < len(self.args):
            first, count = self.args[position], len(self.args) - position
            if first is UNKNOWN and count == 1:
                return ()  # a number, or a tuple of any length
            return first if isinstance(first, tuple) else tuple(self.args[position:])
        value = self.kwargs.get(name)
        return value if isinstance(value, tuple) else () if value is None else (value,)


def apply_function(
    name: str, args: Sequence[Value], kwargs: Mapping[str, Value], symbols: Symbols
) -> Value:
    """Return what a function makes of its arguments; what is not known here is unknown."""
    given = Arguments(args, kwargs)
    operation = OPERATIONS.get(name)
    if operation is not None:
        return operation(given, symbols)
    if name in ALONG_DIM and not given.tensor().shape.is_open:
        rearrangement.position(given.get(1, "dim"), len(given.tensor().shape.sizes))
    if name in ALIKE:
        return (
            ShapedTensor(given.tensor().shape)
            if isinstance(given.get(0, "input"), ShapedTensor)
            else UNKNOWN
        )
    if name in BINARY:
        return _broadcast_all(given, symbols)
    if name in REDUCING:
        return _reduced(given.tensor(), given.get(1, "dim"), given.get(2, "keepdim"), symbols)
    if name in SCALAR:
        return (
            ShapedTensor(Shape(()))
            if given.kwargs.get("reduction", "mean") != "none"
            else ShapedTensor()
        )
    if name in CREATING:
        return _created(given, 1 if name.startswith("new_") else 0)
    return UNKNOWN


def _broadcast_all(given: Arguments, symbols: Symbols) -> Value:
    result: Value = given.get(0, "input")
    for other in given.args[1:]:
        result = products.broadcast(result, other, symbols)
    return result


def _created(given: Arguments, start: int) -> Value:
    sizes = given.rest(start, "size")
    is_empty = not sizes and len(given.args) > start
    if is_empty or not all(is_dim(s) for s in sizes):
        return ShapedTensor()
    return ShapedTensor(Shape(tuple(s for s in sizes if is_dim(s))))


def _reduced(tensor: ShapedTensor, dim: Value, keep: Value, symbols: Symbols) -> Value:
    if dim is None:
        return ShapedTensor(Shape(()))
    sizes = tensor.shape.sizes
    dims = dim if isinstance(dim, tuple) else (dim,)
    if keep not in (None, True, False) or not all(isinstance(d, int) for d in dims):
        return ShapedTensor()
    if tensor.shape.is_open:
        inside = all(isinstance(d, int) and -len(sizes) <= d < 0 for d in dims)
        if not inside:
            return ShapedTensor()
    places = rearrangement.positions(dims, len(sizes))
    if keep:
        kept: tuple[Dim, ...] = tuple(1 if i in places else s for i, s in enumerate(sizes))
    else:
        kept = tuple(s for i, s in enumerate(sizes) if i not in places)
    return ShapedTensor(Shape(kept, tensor.shape.is_open))


def _extreme(given: Arguments, symbols: Symbols) -> Value:
    """Max and min: of all, of two tensors, or along a dimension with the indices."""
    second = given.get(1, "dim")
    if isinstance(second, ShapedTensor) or isinstance(given.kwargs.get("other"), ShapedTensor):
        return _broadcast_all(given, symbols)
    found = _reduced(given.tensor(), second, given.get(2, "keepdim"), symbols)
    return found if second is None else (found, found)


def _norm(given: Arguments, symbols: Symbols) -> Value:
    return _reduced(given.tensor(), given.get(2, "dim"), given.get(3, "keepdim"), symbols)


def _spread(given: Arguments, symbols: Symbols) -> Value:
    """Std and var: the dimension may be the first argument after the tensor, or a flag."""
    first = given.get(1, "dim")
    if isinstance(first, bool):
        return ShapedTensor()
    return _reduced(given.tensor(), first, given.get(len(given.args), "keepdim"), symbols)


def _topk(given: Arguments, symbols: Symbols) -> Value:
    tensor, count, dim = given.tensor(), given.get(1, "k"), given.get(2, "dim", -1)
    at = None if tensor.shape.is_open else rearrangement.position(dim, len(tensor.shape.sizes))
    if at is None or not is_dim(count):
        return (ShapedTensor(), ShapedTensor())
    found = rearrangement.with_size(tensor, at, count)
    return (found, found)


def _arange(given: Arguments, symbols: Symbols) -> Value:
    numbers = given.args
    if len(numbers) == 1 and is_dim(numbers[0]):
        return ShapedTensor(Shape((numbers[0],)))
    if len(numbers) == 2 and is_dim(numbers[0]) and is_dim(numbers[1]):
        return ShapedTensor(Shape((numbers[1] - numbers[0],)))
    if len(numbers) == 3 and all(isinstance(n, int) and n for n in numbers[1:]):
        start, stop, step = (n if isinstance(n, int) else 0 for n in numbers)
        return ShapedTensor(Shape((len(range(start, stop, step)),)))
    return ShapedTensor(Shape((symbols.new(),)))


def _full(given: Arguments, symbols: Symbols) -> Value:
    sizes = given.get(0, "size")
    whole = isinstance(sizes, tuple) and all(is_dim(s) for s in sizes)
    return ShapedTensor(Shape(tuple(sizes))) if whole else ShapedTensor()  # type: ignore[arg-type]


def _randint(given: Arguments, symbols: Symbols) -> Value:
    sizes = given.kwargs.get("size", given.args[-1] if given.args else None)
    return _full(Arguments((sizes,), {}), symbols)


def _linear(given: Arguments, symbols: Symbols) -> Value:
    """F.linear: the weight is (out, in)."""
    tensor, weight = given.tensor(), given.tensor(1, "weight")
    if len(weight.shape.sizes) != 2 or weight.shape.is_open:
        return ShapedTensor()
    turned = ShapedTensor(Shape(weight.shape.sizes[::-1]))
    if tensor.shape.is_open:
        return ShapedTensor(Shape((weight.shape.sizes[0],), True))
    return products.multiplied(tensor, turned, symbols)


def _sequence(given: Arguments) -> list[ShapedTensor] | None:
    items = given.get(0, "tensors")
    if not isinstance(items, tuple) or not items:
        return None
    tensors = [i for i in items if isinstance(i, ShapedTensor)]
    return tensors if len(tensors) == len(items) else None


def _cat(given: Arguments, symbols: Symbols) -> Value:
    tensors = _sequence(given)
    return (
        ShapedTensor() if tensors is None else rearrangement.joined(tensors, given.get(1, "dim", 0))
    )


def _stack(given: Arguments, symbols: Symbols) -> Value:
    tensors = _sequence(given)
    return (
        ShapedTensor()
        if tensors is None
        else rearrangement.stacked(tensors, given.get(1, "dim", 0))
    )


def _split(given: Arguments, symbols: Symbols) -> Value:
    wanted = given.get(1, "split_size", given.kwargs.get("split_size_or_sections"))
    found = rearrangement.split(given.tensor(), wanted, given.get(2, "dim", 0), symbols)
    if found is None and isinstance(wanted, tuple):
        return tuple(ShapedTensor() for _ in wanted)
    return UNKNOWN if found is None else found


def _unbind(given: Arguments, symbols: Symbols) -> Value:
    tensor, dim = given.tensor(), given.get(1, "dim", 0)
    at = None if tensor.shape.is_open else rearrangement.position(dim, len(tensor.shape.sizes))
    size = None if at is None else tensor.shape.sizes[at]
    if at is None or not isinstance(size, int) or size > 4096:
        return UNKNOWN
    sizes = tensor.shape.sizes
    return tuple(ShapedTensor(Shape((*sizes[:at], *sizes[at + 1 :]))) for _ in range(size))


def _select(given: Arguments, symbols: Symbols) -> Value:
    return _reduced(given.tensor(), given.get(1, "dim"), False, symbols)


def _narrow(given: Arguments, symbols: Symbols) -> Value:
    tensor, dim, length = given.tensor(), given.get(1, "dim"), given.get(3, "length")
    at = None if tensor.shape.is_open else rearrangement.position(dim, len(tensor.shape.sizes))
    return (
        rearrangement.with_size(tensor, at, length)
        if at is not None and is_dim(length)
        else ShapedTensor()
    )


def _repeat_interleave(given: Arguments, symbols: Symbols) -> Value:
    tensor, times, dim = given.tensor(), given.get(1, "repeats"), given.get(2, "dim")
    at = None if tensor.shape.is_open else rearrangement.position(dim, len(tensor.shape.sizes))
    if at is None or not is_dim(times):
        return ShapedTensor()
    return rearrangement.with_size(tensor, at, tensor.shape.sizes[at] * times)


def _view_as(given: Arguments, symbols: Symbols) -> Value:
    like = given.tensor(1, "other").shape
    return (
        ShapedTensor()
        if like.is_open
        else rearrangement.viewed(given.tensor(), like.sizes, symbols)
    )


def _expand_as(given: Arguments, symbols: Symbols) -> Value:
    like = given.tensor(1, "other").shape
    return (
        ShapedTensor()
        if like.is_open
        else rearrangement.expanded(given.tensor(), like.sizes, symbols)
    )


def _view(given: Arguments, symbols: Symbols) -> Value:
    wanted = [UNKNOWN if isinstance(w, (float, SizesOf)) else w for w in given.rest(1, "shape")]
    if not wanted or not all(is_dim(w) or w is UNKNOWN for w in wanted):
        is_type = len(wanted) == 1 and not is_dim(wanted[0])
        return ShapedTensor(given.tensor().shape) if is_type else ShapedTensor()
    return rearrangement.viewed(given.tensor(), wanted, symbols)


def _one_hot(given: Arguments, symbols: Symbols) -> Value:
    count, shape = given.get(1, "num_classes", -1), given.tensor().shape
    made = count if is_dim(count) and count != -1 else symbols.new()
    return ShapedTensor(Shape((*shape.sizes, made), shape.is_open))


def _embedding(given: Arguments, symbols: Symbols) -> Value:
    shape, weight = given.tensor().shape, given.tensor(1, "weight").shape
    width = weight.sizes[-1] if weight.sizes else symbols.new()
    return ShapedTensor(Shape((*shape.sizes, width), shape.is_open))


def _gather(given: Arguments, symbols: Symbols) -> Value:
    return ShapedTensor(given.tensor(2, "index").shape)


def _count(given: Arguments, symbols: Symbols) -> Value:
    shape = given.tensor().shape
    return symbols.new() if shape.is_open else product(shape.sizes)


def _where(given: Arguments, symbols: Symbols) -> Value:
    return _broadcast_all(given, symbols) if len(given.args) == 3 else UNKNOWN


def _through(function: Callable[..., Any], *names: tuple[str, Value]) -> Operation:
    """Make an operation of a function that takes a tensor and some options by name."""

    def operation(given: Arguments, symbols: Symbols) -> Value:
        found = [given.get(i + 1, name, default) for i, (name, default) in enumerate(names)]
        return function(given.tensor(), *found)

    return operation


def _arranged(
    function: Callable[[ShapedTensor, tuple[Value, ...], Symbols], Value], name: str
) -> Operation:
    """Make an operation of a function that takes a tensor and any number of sizes."""

    def operation(given: Arguments, symbols: Symbols) -> Value:
        wanted = given.rest(1, name)
        return function(given.tensor(), wanted, symbols) if wanted else ShapedTensor()

    return operation


OPERATIONS: dict[str, Operation] = {
    **SPECTRA,
    "max": _extreme,
    "min": _extreme,
    "norm": _norm,
    "std": _spread,
    "var": _spread,
    "topk": _topk,
    "sort": lambda g, s: (ShapedTensor(g.tensor().shape), ShapedTensor(g.tensor().shape)),
    "arange": _arange,
    "linspace": lambda g, s: _created(Arguments((g.get(2, "steps"),), {}), 0),
    "eye": lambda g, s: _created(Arguments((g.get(0, "n"), g.get(1, "m", g.get(0, "n"))), {}), 0),
    "full": _full,
    "randint": _randint,
    "Parameter": lambda g, s: g.tensor(0, "data"),
    "linear": _linear,
    "cat": _cat,
    "concat": _cat,
    "concatenate": _cat,
    "stack": _stack,
    "split": _split,
    "split_with_sizes": _split,
    "chunk": lambda g, s: rearrangement.chunked(
        g.tensor(), g.get(1, "chunks"), g.get(2, "dim", 0), s
    ) or UNKNOWN,
    "unbind": _unbind,
    "select": _select,
    "narrow": _narrow,
    "repeat_interleave": _repeat_interleave,
    "view": _view,
    "reshape": _view,
    "view_as": _view_as,
    "reshape_as": _view_as,
    "expand_as": _expand_as,
    "flatten": lambda g, s: rearrangement.flattened(
        g.tensor(), g.get(1, "start_dim", 0), g.get(2, "end_dim", -1), s
    ),
    "unflatten": _through(rearrangement.unflattened, ("dim", None), ("sizes", None)),
    "permute": _arranged(lambda t, r, s: rearrangement.permuted(t, r), "dims"),
    "transpose": _through(rearrangement.transposed, ("dim0", None), ("dim1", None)),
    "swapaxes": _through(rearrangement.transposed, ("axis0", None), ("axis1", None)),
    "swapdims": _through(rearrangement.transposed, ("dim0", None), ("dim1", None)),
    "t": lambda g, s: rearrangement.transposed(g.tensor(), -1, -2),
    "squeeze": _through(rearrangement.squeezed, ("dim", None)),
    "unsqueeze": _through(rearrangement.unsqueezed, ("dim", None)),
    "expand": _arranged(rearrangement.expanded, "size"),
    "repeat": _arranged(rearrangement.repeated, "repeats"),
    "tile": _arranged(rearrangement.repeated, "dims"),
    "pad": lambda g, s: windows.padded(g.tensor(), g.get(1, "pad"), s),
    "one_hot": _one_hot,
    "embedding": _embedding,
    "gather": _gather,
    "numel": _count,
    "where": _where,
    "matmul": lambda g, s: products.multiplied(g.tensor(), g.tensor(1, "other"), s),
    "mm": lambda g, s: products.multiplied(g.tensor(), g.tensor(1, "mat2"), s),
    "bmm": lambda g, s: products.multiplied(g.tensor(), g.tensor(1, "mat2"), s),
    "einsum": lambda g, s: products.summed(g.args, s),
    "scaled_dot_product_attention": products.attended,
}  # fmt: skip
