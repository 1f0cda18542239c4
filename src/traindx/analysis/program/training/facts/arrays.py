"""Shapes out of data: arrays of numpy, sets of scikit-learn, tensors made of them, selections."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.examples import INDEX
from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Unknown,
    Value,
)
from traindx.analysis.program.shapes import rearrangement
from traindx.analysis.program.shapes.datasets import SHAPES, transformed_shape
from traindx.analysis.program.shapes.functions import apply_function
from traindx.analysis.program.shapes.sizes import Dim, is_dim
from traindx.analysis.program.shapes.values import UNKNOWN, Mismatch, Shape, ShapedTensor
from traindx.analysis.program.shapes.windows import Symbols
from traindx.analysis.program.training.facts import sample_sets
from traindx.analysis.program.training.facts.sequences import Several, either, joined, nested

if TYPE_CHECKING:
    from traindx.analysis.program.training.facts.tensor_shapes import TensorShapes

OF_DATA = frozenset({"tensor", "as_tensor", "from_numpy", "array", "asarray", "asanyarray",
                     "ascontiguousarray", "Tensor", "FloatTensor", "LongTensor", "DoubleTensor",
                     "IntTensor", "BoolTensor", "HalfTensor"})  # fmt: skip
SAME_DATA = frozenset({"numpy", "astype", "copy", "to_numpy", "pin_memory", "cumsum", "byte",
                       "argsort", "tril", "triu", "type"})  # fmt: skip
# random numbers of numpy: the position of the size
SIZE_AT = {
    "normal": 2, "uniform": 2, "laplace": 2, "standard_normal": 0, "random": 0, "random_sample": 0,
    "integers": 2, "randint": 2, "poisson": 1, "exponential": 1, "binomial": 2, "beta": 2,
    "choice": 1, "gamma": 2, "lognormal": 2, "standard_exponential": 0,
}  # fmt: skip
GENERATORS = ("numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator")
CONSTANTS = frozenset({"numpy.pi", "math.pi", "torch.pi", "numpy.e", "math.e", "numpy.inf",
                       "math.inf", "torch.inf", "math.tau"})  # fmt: skip
NUMBER = math.nan  # some number, of which nothing else is known
NUMBERS = frozenset({"builtins.len", "builtins.int", "random.randint", "random.randrange"})
EXTREMES = {"max": "amax", "min": "amin"}
CREATORS = frozenset({"zeros", "ones", "empty"})


def apply(
    value: Result, name: str | None, args: list[object], kwargs: Mapping[str, object],
    symbols: Symbols,
) -> object:  # fmt: skip
    """Return what is made of data; None where that is no question of data."""
    is_numpy = value.maker.startswith("numpy.")
    last = value.maker.rsplit(".", 1)[-1]
    if is_numpy and value.maker.startswith("numpy.random."):
        return _random(last, args, kwargs)
    if _is_generator(value.receiver):
        return _random(last, args[1:], kwargs)
    if last in OF_DATA and (is_numpy or name == last) and not value.maker.startswith("."):
        return _made_of(last, args, kwargs, symbols)
    if value.maker.startswith(".") and last in SAME_DATA and isinstance(args[0], ShapedTensor):
        return ShapedTensor(args[0].shape)
    if value.maker.startswith(".") and last in ("fit_transform", "transform"):
        is_scaled = sample_sets.is_scaler(value.receiver) and len(args) > 1
        return args[1] if is_scaled else None
    if last == "randperm" and args:
        return _sized((args[0] if is_dim(args[0]) else symbols.new(),))
    if last == "pad_sequence" and args:
        return _padded(args, kwargs, symbols)
    if last == "transpose" and (is_numpy or value.maker.startswith(".")) and len(args) != 3:
        return _turned(args, kwargs)
    if last == "tensor_split" or (is_numpy and last in ("split", "array_split")):
        return _cut_at(args, kwargs)
    if last in ("split", "chunk", "array_split") and args:
        return _cut(last, args, kwargs, symbols)
    return _numpy(last, args, kwargs, symbols) if is_numpy else None


def _is_generator(value: Value | None) -> bool:
    return isinstance(value, Result) and value.maker in GENERATORS


def _random(name: str, args: Sequence[object], kwargs: Mapping[str, object]) -> object:
    if name in ("randn", "rand"):
        sizes: object = tuple(args)
    elif name == "permutation":
        given = args[0] if args else UNKNOWN
        return given if isinstance(given, ShapedTensor) else _sized((given,))
    elif name in SIZE_AT:
        at = SIZE_AT[name]
        sizes = args[at] if len(args) > at else kwargs.get("size")
    else:
        return UNKNOWN
    if sizes is None or sizes == ():
        return UNKNOWN
    return _sized(sizes if isinstance(sizes, tuple) else (sizes,))


def _sized(sizes: tuple[object, ...]) -> object:
    known = [s for s in sizes if is_dim(s)]
    return ShapedTensor(Shape(tuple(known))) if len(known) == len(sizes) else ShapedTensor()


def _made_of(
    name: str, args: list[object], kwargs: Mapping[str, object], symbols: Symbols
) -> object:
    given = args[0] if args else kwargs.get("data", kwargs.get("object", UNKNOWN))
    if name.endswith("Tensor") and args and not isinstance(given, (ShapedTensor, tuple)):
        return _sized(tuple(args)) if all(is_dim(a) for a in args) else ShapedTensor()
    if isinstance(given, ShapedTensor):
        return ShapedTensor(given.shape)
    shape = nested(given, symbols)
    return ShapedTensor() if shape is None else ShapedTensor(shape)


def _padded(args: list[object], kwargs: Mapping[str, object], symbols: Symbols) -> object:
    """Stack sequences of different lengths."""
    given = args[0]
    one = given.one if isinstance(given, Several) else None
    if isinstance(given, tuple) and given:
        one = either(list(given), symbols)
    is_first = args[1] if len(args) > 1 else kwargs.get("batch_first", False)
    if not isinstance(one, ShapedTensor) or one.shape.is_open or not isinstance(is_first, bool):
        return ShapedTensor()
    return ShapedTensor(Shape((symbols.new(), symbols.new(), *one.shape.sizes[1:])))


def _turned(args: list[object], kwargs: Mapping[str, object]) -> object:
    """Apply numpy's transpose: all dimensions are named, or none."""
    if not args or not isinstance(args[0], ShapedTensor) or args[0].shape.is_open or kwargs:
        return ShapedTensor()
    given = args[1] if len(args) == 2 else tuple(args[1:])
    order = given if isinstance(given, tuple) else ()
    if not order:
        return ShapedTensor(Shape(args[0].shape.sizes[::-1]))
    return rearrangement.permuted(args[0], order)


def _cut(name: str, args: list[object], kwargs: Mapping[str, object], symbols: Symbols) -> object:
    """Cut a tensor into parts; an unknown number of them where its size is not known."""
    tensor = args[0]
    if not isinstance(tensor, ShapedTensor) or tensor.shape.is_open or name == "array_split":
        return UNKNOWN
    found = apply_function(name, args, kwargs, symbols)
    if found is not UNKNOWN:
        return found
    dim = args[2] if len(args) > 2 else kwargs.get("dim", 0)
    at = rearrangement.position(dim, len(tensor.shape.sizes))
    return UNKNOWN if at is None else Several(rearrangement.with_size(tensor, at, symbols.new()))


def _cut_at(args: list[object], kwargs: Mapping[str, object]) -> object:
    """Cut as NumPy does: before the given positions, where torch is given sizes."""
    named = next((kwargs[n] for n in ("indices_or_sections", "indices") if n in kwargs), UNKNOWN)
    tensor, points = (*args, UNKNOWN)[0], args[1] if len(args) > 1 else named
    dim = args[2] if len(args) > 2 else kwargs.get("axis", kwargs.get("dim", 0))
    if not isinstance(tensor, ShapedTensor) or tensor.shape.is_open:
        return UNKNOWN
    at = rearrangement.position(dim, len(tensor.shape.sizes))
    size = None if at is None else tensor.shape.sizes[at]
    if at is None or not isinstance(size, int) or not isinstance(points, tuple):
        return UNKNOWN
    cuts = [p for p in points if isinstance(p, int) and 0 <= p <= size]
    if len(cuts) != len(points) or cuts != sorted(cuts):
        return UNKNOWN
    sizes = (end - start for start, end in pairwise((0, *cuts, size)))
    return tuple(rearrangement.with_size(tensor, at, part) for part in sizes)


def _numpy(name: str, args: list[object], kwargs: Mapping[str, object], symbols: Symbols) -> object:
    first = args[0] if args else UNKNOWN
    if name in ("vstack", "hstack", "column_stack"):
        return _stacked(name, first, symbols)
    if name == "expand_dims" and isinstance(first, ShapedTensor):
        at = args[1] if len(args) > 1 else kwargs.get("axis")
        return rearrangement.unsqueezed(first, at)
    if name in CREATORS or name == "full":
        sizes = first if args else kwargs.get("shape", UNKNOWN)
        return _sized(sizes if isinstance(sizes, tuple) else (sizes,))
    if name == "linspace":
        count = args[2] if len(args) > 2 else kwargs.get("num", 50)
        return _sized((count,))
    if name in ("stack", "concatenate") and isinstance(first, Several):
        return joined("stack" if name == "stack" else "cat", first, args, kwargs, symbols)
    if name in ("dot", "matmul"):
        return apply_function("matmul", args, kwargs, symbols)
    plain = EXTREMES.get(name, name)
    if isinstance(first, ShapedTensor) or plain in ("arange", "eye", "stack", "concatenate"):
        return apply_function(plain, args, kwargs, symbols)
    return UNKNOWN


def _stacked(name: str, parts: object, symbols: Symbols) -> object:
    if not isinstance(parts, tuple) or not all(isinstance(p, ShapedTensor) for p in parts):
        return ShapedTensor()
    tensors = [p for p in parts if isinstance(p, ShapedTensor)]
    if any(t.shape.rank is None for t in tensors) or not tensors:
        return ShapedTensor()
    is_flat = all(t.shape.rank == 1 for t in tensors)
    if not is_flat and any(t.shape.rank == 1 for t in tensors):
        return ShapedTensor()
    if is_flat and name != "hstack":
        return rearrangement.stacked(tensors, 0 if name == "vstack" else 1)
    return rearrangement.joined(tensors, 0 if name == "vstack" or is_flat else 1)


def selected(
    tensor: ShapedTensor, keys: list[object], raw: Value, symbols: Symbols
) -> ShapedTensor:
    """Apply a subscript: numbers, slices, new dimensions, an ellipsis, one index or mask."""
    shape = tensor.shape
    if len(keys) == 1 and keys[0] is UNKNOWN and not shape.is_open and shape.sizes:
        return ShapedTensor(Shape(shape.sizes[1:], not _is_number(raw)))
    is_last = len(keys) == 2 and keys[0] is ... and (keys[1] is None or is_dim(keys[1]))
    if shape.is_open:
        made = (*shape.sizes, 1) if is_last and keys[1] is None else None
        return ShapedTensor() if made is None else ShapedTensor(Shape(made, True))
    is_key = [isinstance(k, (ShapedTensor, tuple)) for k in keys]
    plain = [k for k, is_index in zip(keys, is_key, strict=True) if not is_index]
    if sum(is_key) > 1 or not all(_is_plain(k) for k in plain):
        return ShapedTensor()
    return _sliced(tensor, keys, symbols)


def numbered(keys: list[object], raw: Value) -> list[object]:
    """Return the keys of a subscript, with 0 for each that is some number, whichever it is."""
    written = raw.members if isinstance(raw, Items) and len(keys) > 1 else [raw]
    if len(keys) == 1 or len(written) != len(keys):
        return keys
    pairs = zip(keys, written, strict=True)
    return [0 if not is_dim(k) and _is_number(v) else k for k, v in pairs]


def _is_number(value: Value) -> bool:
    """Tell whether an index is one number: of an example, of a counter, or computed from these."""
    if isinstance(value, Unknown):
        return value.name == INDEX
    if isinstance(value, Known):
        return isinstance(value.value, int)
    if not isinstance(value, Result) or value.maker in NUMBERS:
        return isinstance(value, Result)
    if value.maker in ("operator.add", "operator.sub", "operator.mul"):
        return all(_is_number(v) for v in value.args)
    over = value.inputs[0] if value.maker == "builtins.next" and value.args else None
    return isinstance(over, Result) and over.maker == "builtins.range"


def _is_plain(key: object) -> bool:
    return key is None or key is ... or isinstance(key, slice) or is_dim(key)


def _sliced(tensor: ShapedTensor, keys: list[object], symbols: Symbols) -> ShapedTensor:
    sizes = tensor.shape.sizes
    used = sum(1 for k in keys if k is not None and k is not ...)
    if used > len(sizes):
        text = f"{used} indices for the {len(sizes)} dimensions of {tensor.shape}"
        raise Mismatch("dimension", f"at most {len(sizes)} indices", used, text)
    if not any(k is ... for k in keys):
        keys = [*keys, ...]
    made: list[Dim] = []
    at = 0
    for key in keys:
        if key is None:
            made.append(1)
        elif key is ...:
            made.extend(sizes[at : at + len(sizes) - used])
            at += len(sizes) - used
        else:
            kept = _kept(key, sizes[at], tensor, symbols)
            if kept is None:
                return ShapedTensor()
            made.extend(kept)
            at += 1
    return ShapedTensor(Shape(tuple(made)))


def _kept(key: object, size: Dim, tensor: ShapedTensor, symbols: Symbols) -> list[Dim] | None:
    """Return the sizes that stand for one dimension after a subscript of it."""
    if isinstance(key, slice):
        bounds = (key.start, key.stop, key.step)
        if any(b is UNKNOWN or isinstance(b, float) for b in bounds):
            return [symbols.new()]
        return [rearrangement.cut(size, *bounds, symbols)]
    if isinstance(key, tuple):
        is_list = bool(key) and all(isinstance(k, int) and not isinstance(k, bool) for k in key)
        return [len(key)] if is_list else [symbols.new()]
    if isinstance(key, ShapedTensor):
        if key.shape.rank == 1:
            return [key.shape.sizes[0] if key.shape.sizes[0] != size else symbols.new()]
        return list(key.shape.sizes) if key.shape.rank and tensor.shape.rank == 1 else None
    return []


def element(owner: object, symbols: Symbols) -> object:
    """Return what a loop over something is given."""
    if isinstance(owner, Several):
        return owner.one
    if isinstance(owner, tuple) and owner:
        return either(list(owner), symbols)
    if isinstance(owner, ShapedTensor):
        is_known = not owner.shape.is_open and bool(owner.shape.sizes)
        return ShapedTensor(Shape(owner.shape.sizes[1:])) if is_known else ShapedTensor()
    return UNKNOWN


def attribute(part: Part, shapes: TensorShapes) -> object:
    """Return an attribute of a data set: `load_digits().images`."""
    sizes = sample_sets.sizes_of(part.of, part.key)
    return UNKNOWN if sizes is None else ShapedTensor(Shape(sizes))


def split_part(owner: Value, key: int, shapes: TensorShapes) -> object:
    """Return a part of what hands out several arrays: a split, a pair of inputs and labels."""
    if not isinstance(owner, Result):
        return UNKNOWN
    name = owner.maker.rsplit(".", 1)[-1]
    if name == "train_test_split" and 0 <= key // 2 < len(owner.args):
        whole = shapes.of(owner.args[key // 2])
        is_known = isinstance(whole, ShapedTensor) and not whole.shape.is_open
        if isinstance(whole, ShapedTensor) and is_known and whole.shape.sizes:
            return ShapedTensor(Shape((shapes.symbols.new(), *whole.shape.sizes[1:])))
        return UNKNOWN
    if owner.maker.startswith("torchvision.datasets.") and key == 0:
        raw = SHAPES.get(name)
        return UNKNOWN if raw is None else ShapedTensor(Shape(raw))
    sizes = sample_sets.pair_sizes(owner, key)
    return UNKNOWN if sizes is None else ShapedTensor(Shape(sizes))


def transformed(value: Result, args: list[object], shapes: TensorShapes) -> object:
    """Apply the transforms of torchvision, or a chain of them."""
    step = value.receiver
    if not isinstance(step, Result) or not step.maker.startswith("torchvision.transforms."):
        return UNKNOWN
    found = args[0] if args else UNKNOWN
    if not isinstance(found, ShapedTensor) or found.shape.is_open:
        return UNKNOWN
    sizes = found.shape.sizes
    for one in _steps(step):
        given = {k: _number(shapes.of(v)) for k, v in one.kwargs.items()}
        numbers = [_number(shapes.of(v)) for v in one.args]
        whole = tuple(s for s in sizes if isinstance(s, int))
        name = one.maker.rsplit(".", 1)[-1]
        made = transformed_shape(whole, name, numbers, given) if len(whole) == len(sizes) else ()
        if not made:
            return UNKNOWN
        sizes = made
    return ShapedTensor(Shape(sizes))


def _steps(step: Result) -> list[Result]:
    given = step.args[0] if step.args else None
    if step.maker.endswith(".Compose") and isinstance(given, Items) and given.is_whole:
        found = [s for s in given.members if isinstance(s, Result)]
        return found if len(found) == len(given.members) else [step]
    return [step]


def _number(value: object) -> object:
    return value if isinstance(value, (int, tuple)) else None
