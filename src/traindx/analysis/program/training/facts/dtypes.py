"""The element types of the tensors and arrays of a program."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Choice,
    External,
    Items,
    Known,
    Part,
    Result,
    Value,
)
from traindx.analysis.program.shapes.values import ShapedTensor
from traindx.analysis.program.training.facts import sample_sets
from traindx.analysis.program.training.facts.arrays import CONSTANTS, GENERATORS
from traindx.analysis.program.training.facts.batches import drawn
from traindx.analysis.program.training.facts.certainty import makers
from traindx.analysis.program.training.facts.elements import (
    Element,
    dtype_named,
    is_device,
    promoted,
)
from traindx.analysis.program.training.facts.loaded import is_of_bytes
from traindx.analysis.program.training.facts.weight_dtypes import WeightDtypes
from traindx.analysis.program.training.layers import is_layer, is_parameter, layer_kind
from traindx.analysis.program.training.operations import LOSSES, is_in_place, operation_name

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

FLOAT_MAKERS = frozenset({"zeros", "ones", "rand", "randn", "empty", "linspace", "eye", "normal",
                          "logspace", "hann_window", "identity"})  # fmt: skip
INDEX_MAKERS = frozenset({"randint", "randperm", "argmax", "argmin", "argsort", "multinomial",
                          "nonzero", "tril_indices", "triu_indices", "one_hot", "bincount",
                          "searchsorted", "argwhere"})  # fmt: skip
CASTS = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
    "long": "int64", "int": "int32", "short": "int16", "bool": "bool", "byte": "uint8",
}  # fmt: skip
TESTS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "logical_and", "isin",
                   "logical_or", "logical_not", "logical_xor", "isfinite"})  # fmt: skip
OF_DATA = frozenset({"tensor", "as_tensor", "from_numpy", "array", "asarray", "ascontiguousarray"})
TYPED = {"Tensor": "float32", "FloatTensor": "float32", "LongTensor": "int64",
         "DoubleTensor": "float64", "IntTensor": "int32", "BoolTensor": "bool"}  # fmt: skip
SAME = frozenset(
    {"view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "flatten", "contiguous",
     "clone", "detach", "cuda", "cpu", "expand", "repeat", "t", "relu", "clamp", "abs", "neg",
     "flip", "roll", "requires_grad", "copy", "dropout", "pin_memory", "unflatten",
     "expand_as", "view_as", "masked_fill", "tril", "triu", "amax", "amin", "narrow", "select",
     "gather", "index_select", "masked_select", "cumsum", "cumprod", "diff", "operator.invert",
     "sort", "topk", "split", "chunk",
     "unbind", "max", "min", "pad", "expand_dims", "ravel", "tile", "swapaxes", "square", "round",
     "floor", "ceil", "leaky_relu", "interpolate", "max_pool2d", "avg_pool2d", "max_pool1d",
     "adaptive_avg_pool2d", "repeat_interleave", "zeros_like", "ones_like", "rand_like",
     "randn_like", "empty_like", "full_like", "new_zeros", "new_ones", "normalize", "broadcast_to",
     "moveaxis", "movedim", "unfold", "diagonal", "clip", "median"}
)  # fmt: skip
# what is a fraction whatever it is computed from
FRACTIONS = frozenset(
    {"exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "sigmoid", "log1p", "erf", "rsqrt",
     "softmax", "log_softmax", "mean", "std", "var", "gelu", "silu", "softplus", "logsumexp",
     "norm", "elu", "logsigmoid", "expm1", "log2", "log10", "sinh", "cosh", "logit"}
)  # fmt: skip
# makers of numpy that take a type by position
TYPE_AT = {"zeros": 1, "ones": 1, "empty": 1, "full": 2, "array": 1, "asarray": 1, "identity": 1}
RANDOM = frozenset({"normal", "uniform", "standard_normal", "random", "random_sample", "randn",
                    "rand", "laplace", "exponential", "beta", "gamma", "lognormal"})  # fmt: skip
COUNTS = frozenset({"integers", "permutation", "poisson", "binomial", "arange"})
TOTALS = frozenset({"sum", "prod"})
JOINS = frozenset({"cat", "stack", "concat", "concatenate", "vstack", "hstack", "column_stack"})
ARITHMETIC = frozenset({"add", "sub", "mul", "div", "pow", "mod", "floordiv", "maximum", "minimum",
                        "remainder", "floor_divide", "fmod", "and", "or", "xor"})  # fmt: skip
PRODUCTS = frozenset({"matmul", "einsum", "linear", "dot", "mv"})
BYTES = {"cv2.imread": "array", "torchvision.io.read_image": "tensor"}  # images as they are read
DEFAULTS = frozenset({"torch.set_default_dtype", "torch.set_default_tensor_type"})


def _sets_default(program: Program) -> bool:
    return any(story.index.named(*DEFAULTS) for story in program.stories)


class Dtypes:
    """The element types of the values of one story."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self._known: dict[Value, Element | None] = {}
        self._made = makers(story)

    @cached_property
    def default(self) -> str | None:
        """The type of floating-point numbers that torch makes by default."""
        return None if self.story.program.recall(_sets_default) else "float32"

    @cached_property
    def _buffers(self) -> set[Value]:
        """What modules keep as buffers, and convert with their weights."""
        kept = self.story.index.named(".register_buffer")
        return {v for e in kept for v in (*e.args, *e.kwargs.values())}

    @cached_property
    def weights(self) -> WeightDtypes:
        return WeightDtypes(self.story.events, self.default)

    def of(self, value: Value | None) -> Element | None:
        """Return the element type of a value; None where it is not known."""
        if value is None or (value in self._buffers and self.weights.are_converted):
            return None
        if value not in self._known:
            self._known[value] = None  # ends a circle
            self._known[value] = self._found(value)
        return self._known[value]

    def origin(self, value: Value) -> Value:
        """Return the value from which on a value has its element type."""
        element = self.of(value)
        for _ in range(60):
            below = next((v for v in self._sources(value) if self._is_alike(v, element)), None)
            if below is None:
                return value
            value = below
        return value

    def _is_alike(self, value: Value, element: Element | None) -> bool:
        found = self.of(value)
        is_same = found is not None and element is not None and found.dtype == element.dtype
        return is_same and found is not None and found.holder != "number"

    def _sources(self, value: Value) -> tuple[Value, ...]:
        if isinstance(value, Part):
            batch = drawn(self.story, value)
            return (batch.value,) if batch is not None else (value.of,)
        inside = (v for i in value.inputs for v in (i.members if isinstance(i, Items) else (i,)))
        return tuple(v for v in inside if not isinstance(v, Known))

    def _found(self, value: Value) -> Element | None:
        if isinstance(value, Known):
            kinds = {bool: "bool", int: "int64", float: "float64"}
            dtype = kinds.get(type(value.value))
            return None if dtype is None else Element(dtype, "number")
        if isinstance(value, External):
            return Element("float64", "number") if value.name in CONSTANTS else None
        if isinstance(value, Choice):
            found = [self.of(option) for option in value.options]
            is_same = len(set(found)) == 1
            return found[0] if is_same else None
        if isinstance(value, (Part, Result)):
            batch = drawn(self.story, value)
            if batch is not None:
                row = self.of(batch.value)
                return _collated(row) if batch.is_stacked else row
        if isinstance(value, Part):
            return self._part(value)
        if not isinstance(value, Result):
            return None
        return self._sized(value, self._computed(value))

    def _sized(self, value: Value, found: Element | None) -> Element | None:
        """Add whether it is one number, which widens no others."""
        if found is None or found.holder == "number":
            return found
        shape = self.story.shapes.of(value)
        if not isinstance(shape, ShapedTensor):
            return Element(found.dtype, found.holder)
        sizes = shape.shape
        is_single = not sizes.sizes if not sizes.is_open else False if sizes.sizes else None
        return Element(found.dtype, found.holder, is_single)

    def _part(self, value: Part) -> Element | None:
        if value.key == "indices":
            return Element("int64")
        if sample_sets.set_name(value.of):
            return _table(value)
        owner = value.of
        if isinstance(owner, Result) and owner.maker.endswith(".train_test_split"):
            at = value.key // 2 if isinstance(value.key, int) else -1
            return self.of(owner.args[at]) if 0 <= at < len(owner.args) else None
        if isinstance(value.key, int) and isinstance(owner, Result):
            name = operation_name(owner.maker)
            if name in ("max", "min", "topk", "sort", "median") and value.key == 1:
                return Element("int64")
        if isinstance(value.key, int) or value.key in ("T", "mT", "data", "grad", "values"):
            return self._sized(value, self.of(owner))
        return None

    def _computed(self, value: Result) -> Element | None:
        if value.maker == "()":
            return self._layer(value)
        home, _, last = value.maker.rpartition(".")
        if home in ("math", "random") or value.maker == ".item":
            return Element("float64", "number") if home == "math" else None
        if home == "builtins":
            numbers = {"float": "float64", "int": "int64", "len": "int64", "bool": "bool"}
            return Element(numbers[last], "number") if last in numbers else None
        receiver = () if value.receiver is None else (value.receiver,)
        args = (*receiver, *value.args)
        name = operation_name(value.maker)
        holder = "array" if home.startswith("numpy") else "tensor"
        if is_parameter(value):
            return self.of(args[0]) if args else None
        if is_in_place(value.maker) and (changed := self._kept(args)) is not None:
            return changed
        if sample_sets.is_scaler(value.receiver) and last in ("fit_transform", "transform"):
            found = self.of(args[1]) if len(args) > 1 else None
            return Element("float32" if found and found.dtype == "float32" else "float64", "array")
        if holder == "array" or _is_generator(value.receiver):
            return self._array(home, last, args, value)
        if home == "cv2" and args and value.maker not in BYTES:
            return self.of(args[0])
        if value.maker in BYTES:
            return Element("uint8", BYTES[value.maker])
        if home.startswith("torch") or home in ("", "operator"):
            return self._tensor(name, last, args, value)
        return None

    def _kept(self, args: Sequence[Value]) -> Element | None:
        """The type of what is changed in place, which stays; a number is another one afterwards."""
        found = self.of(args[0]) if args else None
        return found if found is not None and found.holder != "number" else None

    def _layer(self, value: Result) -> Element | None:
        layer, event = value.receiver, self._made.get(value)
        if not is_layer(layer) or event is None or is_autocast(event):
            return None
        kind = layer_kind(layer)
        if kind.endswith("Loss"):
            output = self.of(value.args[0]) if value.args else None
            return Element(output.dtype) if output is not None and output.is_float else None
        if kind in WITH_WEIGHTS:
            dtype = self.weights.of(layer, event)
            return None if dtype is None else Element(dtype)
        return self.of(value.args[0]) if value.args else None

    def _array(self, home: str, last: str, args: Sequence[Value], value: Result) -> Element | None:
        """Return the type of what numpy makes."""
        at = TYPE_AT.get(last, len(value.args))
        wanted = value.kwargs.get("dtype", next(iter(value.args[at:]), None))
        if wanted is not None:
            return _held(dtype_named(wanted), "array")
        if last in INDEX_MAKERS or last in COUNTS:
            given = [self.of(a) for a in args]
            if last == "permutation" and args and not isinstance(args[-1], Known):
                return None
            is_whole = all(g is not None and not g.is_float for g in given)
            is_index = last != "arange" or is_whole
            return Element("int64" if is_index else "float64", "array") if is_index or all(
                given) else None  # fmt: skip
        is_random = home == "numpy.random" or _is_generator(value.receiver)
        if is_random:
            return Element("float64", "array") if last in RANDOM else None
        if last in FLOAT_MAKERS:
            return Element("float64", "array")
        if last == "full" and len(args) > 1:
            fill = self.of(args[1])
            return None if fill is None else Element(fill.dtype, "array")
        if last in OF_DATA and args:
            if is_of_bytes(args[0], self.story.shapes):
                return Element("uint8", "array")
            found = self._data(args[0])
            return None if found is None else Element(found.dtype, "array")
        found = self._general(operation_name(f"torch.{last}"), args, value, "float64")
        is_number = found is not None and found.holder == "number"
        return Element(found.dtype, "array") if found is not None and is_number else found

    def _tensor(self, name: str, last: str, args: Sequence[Value], value: Result) -> Element | None:
        """Return the type of what torch, a method or an operator makes."""
        wanted = value.kwargs.get("dtype")
        if name in ("to", "type", "astype", "type_as"):
            return self._converted(args, wanted, "array" if name == "astype" else "tensor")
        if wanted is not None and not (isinstance(wanted, Known) and wanted.value is None):
            is_array = name in ("to_numpy", "numpy")  # of a table
            return _held(dtype_named(wanted), "array" if is_array else "tensor")
        if value.receiver is not None and name in CASTS and len(args) == 1:
            found = self.of(args[0])
            holder = "tensor" if found is None else found.holder
            return Element(CASTS[name], holder)
        is_function = value.receiver is None and value.maker.startswith("torch.")
        if is_function and last in TYPED:
            return Element(TYPED[last])
        if is_function and last in FLOAT_MAKERS:
            return _held(self.default, "tensor")
        if last in INDEX_MAKERS:
            found = Element("int64") if is_function else self.of(value.receiver)
            return None if found is None else Element("int64", found.holder)
        if is_function and last == "arange":
            given = [self.of(a) for a in args]
            is_index = all(g is not None and not g.is_float for g in given)
            return Element("int64") if is_index else None
        if is_function and last == "full" and len(args) > 1:
            fill = self.of(args[1])
            return None if fill is None else self._from_data(Element(fill.dtype, "number"))
        if is_function and last in OF_DATA and args:
            return self._from_data(self._data(args[0]))
        return self._general(name, args, value, self.default)

    def _converted(
        self, args: Sequence[Value], wanted: Value | None, holder: str
    ) -> Element | None:
        found = self.of(args[0]) if args else None
        holder = holder if found is None else found.holder
        for given in (*args[1:], *((wanted,) if wanted is not None else ())):
            dtype = dtype_named(given)
            other = None if dtype is not None else self.of(given)
            if dtype is not None or (other is not None and other.holder == "tensor"):
                return Element(dtype or (other.dtype if other else ""), holder)
            if not is_device(given):
                return None  # also a default of None, in whose place a type is given
        return found

    def _data(self, value: Value) -> Element | None:
        """Return what the numbers of nested lists are."""
        if isinstance(value, Items):
            found = [self._data(member) for member in value.members[:8]]
            return promoted(found) if found else None
        return self.of(value)

    def _from_data(self, found: Element | None) -> Element | None:
        """Return the type of a tensor of data: Python's floats become torch's default."""
        if found is None:
            return None
        is_plain = found.holder == "number" and found.is_float
        return _held(self.default if is_plain else found.dtype, "tensor")

    def _general(
        self, name: str, args: Sequence[Value], value: Result, default: str | None
    ) -> Element | None:
        first = self.of(args[0]) if args else None
        if name in TESTS:
            return self._tested(args)
        if (name in JOINS or name.endswith(".pad_sequence")) and args:
            members = args[0].members if isinstance(args[0], Items) else []
            found = self._joined([self.of(m) for m in members[:8]]) if members else None
            is_numbers = found is not None and found.holder == "number"
            return None if is_numbers else found
        if name == "where" and len(args) == 3:
            return promoted([self.of(a) for a in args[1:]])
        if name in ARITHMETIC:
            return self._arithmetic(name, args, default)
        if name in PRODUCTS:
            operands = [v for v in args if not isinstance(v, Known)]
            found_all = [self.of(v) for v in operands]
            is_same = len({e.dtype if e else None for e in found_all}) == 1
            return found_all[0] if found_all and is_same else None
        if first is None:
            return None
        if name in LOSSES:
            return Element(first.dtype) if first.is_float else None
        if name == "numpy":
            return Element(first.dtype, "array", first.is_single)
        if name in FRACTIONS:
            return first if first.is_float else first.cast(default)
        if name in TOTALS:
            return first if first.is_float else first.cast("int64")
        is_kept = name in SAME or name == "getitem"
        return first if is_kept and first.holder != "number" else None

    def _joined(self, elements: Sequence[Element | None]) -> Element | None:
        """Return what tensors join to: doubles stay doubles, whatever they are joined with."""
        doubles = (e for e in elements if e is not None and e.dtype == "float64")
        widest = next((e for e in doubles if e.holder == "tensor"), None)
        return widest or promoted(elements)

    def _tested(self, args: Sequence[Value]) -> Element | None:
        found = [self.of(a) for a in args]
        holders = {f.holder for f in found if f is not None}
        if "tensor" in holders:
            return Element("bool")
        return Element("bool", "array") if holders == {"array"} and all(found) else None

    def _arithmetic(self, name: str, args: Sequence[Value], default: str | None) -> Element | None:
        found = promoted([self.of(a) for a in args])
        if found is None or found.is_float or name != "div":
            return found
        if found.holder == "array":
            return found.cast("float64")
        return found.cast("float64" if found.holder == "number" else self.default)


WITH_WEIGHTS = frozenset(
    {"Linear", "Bilinear", "Embedding", "EmbeddingBag", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell",
     "RNNCell", "MultiheadAttention", "TransformerEncoderLayer", "TransformerEncoder", "Conv1d",
     "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LayerNorm",
     "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "TransformerDecoderLayer",
     "TransformerDecoder", "Transformer"}
)  # fmt: skip


def is_autocast(event: ProgramEvent) -> bool:
    """Tell whether an event happens where torch chooses the types of products by itself."""
    makers = (c.maker if isinstance(c, Result) else "autocast" for c in event.contexts)
    return any("autocast" in m or "accumulate" in m for m in makers)


def _is_generator(value: Value | None) -> bool:
    return isinstance(value, Result) and value.maker in GENERATORS


def _held(dtype: str | None, holder: str) -> Element | None:
    return None if dtype is None else Element(dtype, holder)


def _collated(row: Element | None) -> Element | None:
    """Return what the default collate function makes of the numbers of examples."""
    return None if row is None else Element(row.dtype, "tensor", False)


def _table(value: Part) -> Element | None:
    """Return the type of a set of scikit-learn: inputs are doubles, classes whole numbers."""
    if value.key in ("data", "images", 0):
        return Element("float64", "array", False)
    if value.key in ("target", 1):
        is_classes = sample_sets.classes_of(value.of) is not None
        return Element("int64" if is_classes else "float64", "array", False)
    return None
