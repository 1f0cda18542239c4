"""The shapes of the tensors of a program, by the arithmetic of `analysis/program/shapes`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.iteration import layers_of
from traindx.analysis.program.execution.values import (
    Choice,
    External,
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
    is_same,
)
from traindx.analysis.program.shapes import products, rearrangement
from traindx.analysis.program.shapes.functions import ALIKE as ALIKE_FUNCTIONS
from traindx.analysis.program.shapes.functions import (
    BINARY,
    CREATING,
    OPERATIONS,
    REDUCING,
    SCALAR,
    apply_function,
)
from traindx.analysis.program.shapes.layers import apply_layer
from traindx.analysis.program.shapes.signatures import ALIKE, AS_LAYER, SIGNATURES, options
from traindx.analysis.program.shapes.sizes import Dim, Size, floor, is_dim
from traindx.analysis.program.shapes.values import (
    UNKNOWN,
    Layer,
    Mismatch,
    Shape,
    ShapedTensor,
    SizesOf,
)
from traindx.analysis.program.shapes.windows import Symbols, slid
from traindx.analysis.program.training.facts import arrays
from traindx.analysis.program.training.facts.batches import drawn
from traindx.analysis.program.training.facts.certainty import is_certain, makers
from traindx.analysis.program.training.facts.loaded import loaded
from traindx.analysis.program.training.facts.loss_shapes import check_loss, scalar
from traindx.analysis.program.training.facts.sequences import Several, either, joined
from traindx.analysis.program.training.facts.zoo_models import zoo_output
from traindx.analysis.program.training.layers import is_layer, layer_kind
from traindx.analysis.program.training.operations import HOMES, LOSSES, Operation, operation_of
from traindx.analysis.program.training.settings import default_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

DEEPEST = 120  # computations behind a value that are looked through
GUESS = "~"  # begins the symbol of a dimension that a layer was taken to be fed with
FUNCTIONS = {
    *OPERATIONS, *ALIKE_FUNCTIONS, *BINARY, *REDUCING, *CREATING, *SCALAR, *AS_LAYER,
}  # fmt: skip
SIGNS: dict[str, str] = {
    **{n: n for n in ("add", "sub", "mul", "div", "pow", "eq", "ne", "lt", "le", "gt", "ge")},
    "mod": "remainder", "floordiv": "floor_divide", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_or", "matmul": "matmul",
}  # fmt: skip
RESHAPED_IN_PLACE = frozenset(
    {".unsqueeze_", ".squeeze_", ".resize_", ".t_", ".transpose_", ".set_", ".resize_as_"}
)
UNSURE_METHODS = frozenset({"split", "sort", "index", "copy", "norm", "type", "data"})


class Guesses(Symbols):
    """New symbols, of which those that a layer's needs suggest are marked."""

    def closed(self, tensor: ShapedTensor, rank: int) -> tuple[Dim, ...]:
        sizes = tensor.shape.sizes
        if not tensor.shape.is_open or len(sizes) >= rank:
            return sizes
        return (*(self.new(GUESS) for _ in range(rank - len(sizes))), *sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Clash:
    """An operation whose sizes cannot agree, where it is done."""

    event: ProgramEvent
    mismatch: Mismatch
    layer: Result | None

    @property
    def text(self) -> str:
        """What cannot agree, with `B` for a batch and `?` for a size that is not known."""
        return re.sub(r"([B?])\d+", r"\1", self.mismatch.text.replace(GUESS, "?"))


class TensorShapes:
    """The shapes of the values of one story."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.symbols = Guesses()
        self._depth = 0
        self._known: dict[Value, object] = {}
        self._sizes: dict[tuple[int, int], Dim] = {}
        self._clashes: dict[int, tuple[Mismatch, tuple[object, ...]]] = {}
        self._first: dict[object, object] = {}
        self._made = makers(story)
        self._reshaped: set[int] = set()
        self._unpacked: dict[int, Value] = {}
        for event in story.events:
            if event.name in RESHAPED_IN_PLACE:
                self._reshaped.add(id(event.receiver))
            if event.name == ".size" and not event.args and event.receiver is not None:
                self._unpacked.setdefault(id(event.receiver), event.result or event.receiver)

    def of(self, value: Value | None) -> object:
        """Return a tensor with its shape, a size, a tuple of these, or UNKNOWN."""
        if value is None:
            return UNKNOWN
        if value not in self._known:
            self._known[value] = UNKNOWN  # ends a circle
            self._depth += 1
            if self._depth < DEEPEST:
                self._known[value] = self._found(value)
            self._depth -= 1
        return self._known[value]

    def shape(self, value: Value | None) -> Shape | None:
        """Return the shape of a tensor; None where nothing is known of it."""
        found = self.of(value)
        if not isinstance(found, ShapedTensor):
            return None
        return found.shape if found.shape.sizes or not found.shape.is_open else None

    def pairs_all(self, column: Value | None, row: Value | None) -> bool:
        """Tell whether (N, 1) meets (N): broadcasting pairs each of one with all of the other."""
        first, second = self.shape(column), self.shape(row)
        if first is None or second is None or first.is_open or second.is_open:
            return False
        is_column = len(first.sizes) == 2 and first.sizes[1] == 1 and first.sizes[0] != 1
        return is_column and second.sizes == first.sizes[:1]

    def is_clash(self, value: Value | None) -> bool:
        """Tell whether the sizes of what made a value cannot agree."""
        self.of(value)
        return id(value) in self._clashes

    def clashes(self) -> Iterator[Clash]:
        """Yield the operations that cannot work, on paths that surely run."""
        for event in self.story.events:
            if event.result is None or event.act is not EventForm.CALL:
                continue
            self.of(event.result)
            found = self._clashes.get(id(event.result))
            if found is None or self._made.get(event.result) is not event:
                continue
            mismatch, given = found
            taken = tuple(_tensors(given))
            if is_certain(event) and not _is_guess(mismatch, taken):
                layer = event.receiver if is_layer(event.receiver) else None
                yield Clash(event, mismatch, layer if isinstance(layer, Result) else None)

    def _found(self, value: Value) -> object:
        if isinstance(value, Known):
            known = value.value
            is_plain = known is None or known is ... or isinstance(known, (int, float, str))
            return known if is_plain else UNKNOWN
        if isinstance(value, Items):
            inside = [self.of(member) for member in value.members]
            if value.is_whole:
                return tuple(inside)
            return Several(either(inside, self.symbols)) if inside else UNKNOWN
        if isinstance(value, External):
            if value.name in arrays.CONSTANTS:
                return arrays.NUMBER
            return None if value.name == "numpy.newaxis" else UNKNOWN
        if isinstance(value, Choice):
            return either([self.of(option) for option in value.options], self.symbols)
        if id(value) in self._reshaped:
            return ShapedTensor()
        if isinstance(value, (Part, Result)):
            batch = drawn(self.story, value)
            if batch is not None:
                row = self.of(batch.value)
                return self._stacked(row, id(batch.loader)) if batch.is_stacked else row
            read = loaded(value, self)
            if read is not None:
                return read
        if isinstance(value, Part):
            return self._part(value)
        found = self._computed(value) if isinstance(value, Result) else UNKNOWN
        return self._ranked(value, found)

    def _stacked(self, row: object, loader: int) -> object:
        """Put the dimension of the batch before what an example holds."""
        if isinstance(row, tuple):
            return tuple(self._stacked(part, loader) for part in row)
        batch = self._sizes.setdefault((loader, 0), self.symbols.new("B"))
        if isinstance(row, ShapedTensor):
            shape = row.shape
            return ShapedTensor(Shape((batch, *shape.sizes)) if not shape.is_open else shape)
        is_number = isinstance(row, (int, float, Size)) and not isinstance(row, bool)
        return ShapedTensor(Shape((batch,))) if is_number else UNKNOWN

    def _ranked(self, value: Value, found: object) -> object:
        """Give a tensor as many dimensions as the program unpacks its shape into."""
        is_open = isinstance(found, ShapedTensor) and found.shape == Shape((), True)
        if found is not UNKNOWN and not is_open:
            return found
        rank = self._unpacked_rank(value)
        if rank is None:
            return found
        return ShapedTensor(Shape(tuple(self._size_of(value, i) for i in range(rank))))

    def _unpacked_rank(self, value: Value) -> int | None:
        shapes = (value.fields.get(("part", "shape")), self._unpacked.get(id(value)))
        counts = {
            key[1]
            for shape in shapes
            if shape is not None
            for key in shape.fields
            if isinstance(key, tuple) and key[0] == "unpacked"
        }
        return counts.pop() if len(counts) == 1 else None

    def _size_of(self, tensor: Value, index: int) -> Dim:
        """Return the symbol of a size that is not known: the same each time."""
        return self._sizes.setdefault((id(tensor), index), self.symbols.new())

    def _part(self, value: Part) -> object:
        default = default_of(self.story, value)
        if default is not None:
            return self.of(default)
        owner, key = self.of(value.of), value.key
        if key == "shape":
            return self._sizes_of(value.of, owner)
        if key in ("T", "mT", "H"):
            return _reversed(owner)
        if isinstance(owner, ShapedTensor) and key in ("data", "grad", "real"):
            return ShapedTensor(owner.shape)
        if isinstance(owner, ShapedTensor) and key == "ndim":
            return UNKNOWN if owner.shape.rank is None else owner.shape.rank
        if isinstance(key, str) and key in ("values", "indices") and isinstance(owner, tuple):
            return owner[0] if owner else UNKNOWN
        if isinstance(key, int):
            return self._numbered(value.of, owner, key)
        found = arrays.attribute(value, self)
        return self._ranked(value, found)

    def _sizes_of(self, tensor: Value, found: object) -> object:
        if not isinstance(found, ShapedTensor):
            found = self._ranked(tensor, ShapedTensor())
        return SizesOf(found) if isinstance(found, ShapedTensor) else UNKNOWN

    def _numbered(self, value: Value, owner: object, key: int) -> object:
        if isinstance(owner, SizesOf):
            return self._size_at(value, owner.tensor, key)
        if isinstance(owner, tuple):
            return owner[key] if -len(owner) <= key < len(owner) else UNKNOWN
        if isinstance(owner, Several):
            return owner.one
        if isinstance(owner, ShapedTensor) and not owner.shape.is_open and owner.shape.sizes:
            return ShapedTensor(Shape(owner.shape.sizes[1:]))
        split = arrays.split_part(value, key, self)
        return ShapedTensor() if isinstance(owner, ShapedTensor) else split

    def _size_at(self, shape: Value, tensor: ShapedTensor, index: int) -> object:
        sizes = tensor.shape.sizes
        if -len(sizes) <= index < (0 if tensor.shape.is_open else len(sizes)):
            return sizes[index]
        home = shape.of if isinstance(shape, Part) else shape.inputs[0] if shape.inputs else shape
        return self._size_of(home, index) if tensor.shape.is_open else UNKNOWN

    def _computed(self, value: Result) -> object:
        event = self._made.get(value)
        if event is not None and any(layers_of(c) is None for c in event.within if _is_chain(c)):
            return ShapedTensor()  # layers that stand for others that were not seen
        if any(isinstance(v, Result) and v.maker == "operator.spread" for v in value.args):
            return ShapedTensor()  # as many sizes as there are: `x.view(-1, *sizes)`
        receiver = () if value.receiver is None or value.maker == "()" else (value.receiver,)
        args = [_plain(self.of(v)) for v in (*receiver, *value.args)]
        kwargs = {k: _plain(self.of(v)) for k, v in value.kwargs.items()}
        try:
            found = self._called(value, args, kwargs)
        except Mismatch as mismatch:
            self._clashes[id(value)] = (mismatch, (*args, *kwargs.values()))
            return ShapedTensor()
        except (ArithmeticError, TypeError, IndexError):
            return UNKNOWN
        return self._settled(event, found)

    def _settled(self, event: ProgramEvent | None, found: object) -> object:
        """Forget a size that is another one in each turn of a loop of unknown length."""
        if event is None or not isinstance(found, ShapedTensor):
            return found
        open_turns = [t for t in event.turns if not t.loop.is_whole]
        if not open_turns:
            return found
        closed = tuple((t.loop.site.node, t.number) for t in event.turns if t.loop.is_whole)
        place = (event.node, event.name, tuple(id(c.node) for c in event.callers), closed,
                 tuple(id(w) for w in event.within),
                 id(event.receiver) if is_layer(event.receiver) else None)  # fmt: skip
        first = self._first.setdefault(place, found)
        return found if first is found else either([first, found], self.symbols)

    def _called(self, value: Result, args: list[object], kwargs: dict[str, object]) -> object:
        maker = value.maker
        operation = operation_of(value)
        if operation is not None and operation.name in LOSSES:
            return self._loss(operation)
        if maker == "()":
            return self._layer_call(value, args, kwargs)
        if maker.startswith("operator."):
            return self._operator(value, maker.removeprefix("operator."), args)
        if maker.startswith("builtins."):
            return self._builtin(maker.removeprefix("builtins."), value, args)
        if maker.startswith(("math.", "random.")) or maker == ".item":
            return arrays.NUMBER
        name = maker[1:] if maker.startswith(".") else _function_name(maker)
        if maker.startswith(".") and name in ("size", "dim", "ndimension", "shape"):
            return self._size_call(value, name, args, kwargs)
        if maker.startswith(".") and name in arrays.EXTREMES and self._is_array(value.receiver):
            name = arrays.EXTREMES[name]  # numpy gives the values alone
        found = arrays.apply(value, name, args, kwargs, self.symbols)
        if found is not None or name is None:
            return UNKNOWN if found is None else found
        return self._function(name, args, kwargs, is_method=maker.startswith("."))

    def _is_array(self, value: Value | None) -> bool:
        element = self.story.dtypes.of(value)
        return element is not None and element.holder == "array"

    def _function(
        self, name: str, args: list[object], kwargs: dict[str, object], *, is_method: bool
    ) -> object:
        plain = name if name in FUNCTIONS else name.rstrip("_")
        is_known = bool(args) and isinstance(args[0], (ShapedTensor, tuple, Several))
        if plain not in FUNCTIONS or (is_method and not is_known and name in UNSURE_METHODS):
            return UNKNOWN
        if is_method and plain == "unfold" and len(args) == 4:
            return slid(args[0], args[1:], self.symbols) if is_known else UNKNOWN  # type: ignore[arg-type]
        if plain in AS_LAYER and args:
            kind = AS_LAYER[plain]
            layer = Layer(kind, options(kind, args[1:], kwargs), _NOWHERE, None)  # type: ignore[arg-type]
            return apply_layer(layer, args[:1], {}, self.symbols)
        if plain in ("cat", "stack", "concat") and args and isinstance(args[0], Several):
            return joined(plain, args[0], args, kwargs, self.symbols)
        if plain in BINARY and any(a is UNKNOWN for a in args):
            return ShapedTensor()
        return apply_function(plain, args, kwargs, self.symbols)

    def _loss(self, operation: Operation) -> object:
        output, target = (self.of(operation.argument(n)) for n in ("input", "target"))
        if isinstance(output, ShapedTensor) and isinstance(target, ShapedTensor):
            check_loss(operation.name, output.shape, target.shape)
        if constant(operation.settings.get("reduction")) == "none":
            is_of_classes = operation.name in ("cross_entropy", "nll_loss")
            return target if is_of_classes else output
        return scalar(self.of(operation.settings.get("reduction", Known("mean"))))

    def _layer_call(
        self, value: Result, args: list[object], kwargs: Mapping[str, object]
    ) -> object:
        layer = self.layer(value.receiver)
        if layer is not None:
            return apply_layer(layer, args, kwargs, self.symbols)
        given = zoo_output(value.receiver, args, self)
        return arrays.transformed(value, args, self) if given is None else given

    def layer(self, value: Value | None) -> Layer | None:
        """Return a layer of torch with its options; None where it is none that we know."""
        kind = layer_kind(value)
        is_known = kind in SIGNATURES or kind in ALIKE
        if not isinstance(value, Result) or not is_known or "**" in value.kwargs:
            return None
        given = [self.layer(a) or _plain(self.of(a)) for a in value.args]
        named = {k: self.layer(v) or _plain(self.of(v)) for k, v in value.kwargs.items()}
        return Layer(kind, options(kind, given, named), _NOWHERE, None)  # type: ignore[arg-type]

    def _operator(self, value: Result, name: str, args: list[object]) -> object:
        if name == "getitem":
            return self._item(value, args)
        if name in ("neg", "invert", "pos"):
            if isinstance(args[0], ShapedTensor):
                return ShapedTensor(args[0].shape)
            return arrays.NUMBER if isinstance(args[0], (int, float, Size)) else UNKNOWN
        plain = name if name in SIGNS or name[:1] != "i" else name[1:]
        if len(args) != 2 or plain not in SIGNS:
            return UNKNOWN
        left, right = args
        if isinstance(left, ShapedTensor) or isinstance(right, ShapedTensor):
            if plain == "matmul":
                is_pair = isinstance(left, ShapedTensor) and isinstance(right, ShapedTensor)
                pair = (left, right) if is_pair else (ShapedTensor(), ShapedTensor())
                return products.multiplied(*pair, self.symbols)  # type: ignore[arg-type]
            return products.broadcast(left, right, self.symbols)
        if isinstance(left, tuple) and isinstance(right, tuple) and plain == "add":
            return (*left, *right)
        if isinstance(left, Several) or isinstance(right, Several):
            return Several(UNKNOWN) if plain in ("add", "mul") else UNKNOWN
        if is_dim(left) and is_dim(right) and plain in _SIZES:
            return _SIZES[plain](left, right)
        is_number = all(isinstance(v, (int, float, Size)) for v in (left, right))
        return arrays.NUMBER if is_number else UNKNOWN

    def _item(self, value: Result, args: list[object]) -> object:
        owner, key = args
        raw = value.args[1]
        if isinstance(owner, ShapedTensor):
            is_tuple = isinstance(raw, Items) and raw.kind == "tuple"
            keys = list(key) if is_tuple and isinstance(key, tuple) else [key]
            return arrays.selected(owner, arrays.numbered(keys, raw), raw, self.symbols)
        if isinstance(owner, (tuple, SizesOf)) and isinstance(key, slice):
            sizes = _plain(owner)
            return sizes[key] if isinstance(sizes, tuple) and _is_plain_slice(key) else UNKNOWN
        if isinstance(owner, tuple) and is_dim(key) is False:
            return either(list(owner), self.symbols) if owner else UNKNOWN
        if isinstance(owner, Several):
            return owner if isinstance(key, slice) else owner.one
        return UNKNOWN

    def _builtin(self, name: str, value: Result, args: list[object]) -> object:
        first = args[0] if args else UNKNOWN
        if name == "slice":
            width = _width(value)
            return slice(*args) if width is None else slice(0, width)
        if name == "range":
            return Several(arrays.NUMBER)
        if name == "next":
            return arrays.element(first, self.symbols)
        if name == "len" and isinstance(first, ShapedTensor):
            return self._size_at_front(value.args[0], first)
        if name == "len" and isinstance(first, tuple):
            return len(first)
        if name == "int" and is_dim(first):
            return first
        if name in ("float", "int", "len", "abs", "round", "bool"):
            return first if isinstance(first, ShapedTensor) and name == "abs" else arrays.NUMBER
        if name in ("tuple", "list") and isinstance(first, ShapedTensor):
            return Several(arrays.element(first, self.symbols))  # it adds up as lists do
        if name in ("tuple", "list", "iter", "reversed", "sorted") and len(args) == 1:
            return first
        return UNKNOWN

    def _size_at_front(self, value: Value, tensor: ShapedTensor) -> object:
        if not tensor.shape.is_open:
            return tensor.shape.sizes[0] if tensor.shape.sizes else UNKNOWN
        return self._size_of(value, 0)

    def _size_call(
        self, value: Result, name: str, args: list[object], kwargs: Mapping[str, object]
    ) -> object:
        tensor = args[0]
        receiver = value.receiver if value.receiver is not None else value
        if name in ("dim", "ndimension"):
            is_closed = isinstance(tensor, ShapedTensor) and tensor.shape.rank is not None
            return tensor.shape.rank if is_closed else UNKNOWN  # type: ignore[attr-defined]
        sizes = self._sizes_of(receiver, tensor)
        index = args[1] if len(args) > 1 else kwargs.get("dim")
        if index is None:
            return sizes
        if not isinstance(index, int):
            return UNKNOWN
        home = sizes.tensor if isinstance(sizes, SizesOf) else ShapedTensor()
        if not home.shape.is_open:
            rearrangement.position(index, len(home.shape.sizes))
        is_known = -len(home.shape.sizes) <= index < (0 if home.shape.is_open else 99)
        return home.shape.sizes[index] if is_known else self._size_of(receiver, index)


_NOWHERE = ast.Call(ast.Name("layer", ast.Load()), [], [])
_SIZES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: floor(a, b) if isinstance(a, int) else a // b,
}


def _plain(value: object) -> object:
    """Return sizes as a tuple where all of them are known."""
    if isinstance(value, SizesOf):
        return value if value.tensor.shape.is_open else value.tensor.shape.sizes
    return value


def _width(cut: Result) -> int | None:
    """Return how much `i:i + n` cuts out, wherever that begins."""
    if len(cut.args) < 2 or any(constant(step) is not None for step in cut.args[2:]):
        return None
    start, end = cut.args[:2]
    if not isinstance(end, Result) or end.maker != "operator.add":
        return None
    pairs = (end.args, end.args[::-1]) if len(end.args) == 2 else ()
    widths = [constant(count) for begin, count in pairs if is_same(begin, start)]
    width = widths[0] if len(widths) == 1 else None
    return width if isinstance(width, int) and width > 0 else None


def _is_plain_slice(key: slice) -> bool:
    return all(b is None or isinstance(b, int) for b in (key.start, key.stop, key.step))


def _is_chain(value: Value) -> bool:
    return isinstance(value, Result) and value.maker == "torch.nn.Sequential"


def _function_name(maker: str) -> str | None:
    """Return the name of a function of torch; None where it is one of another library."""
    for home in HOMES:
        if maker.startswith(home) and "." not in maker[len(home) :]:
            return maker[len(home) :]
    return "Parameter" if maker == "torch.nn.Parameter" else None


def _reversed(owner: object) -> object:
    if isinstance(owner, ShapedTensor) and not owner.shape.is_open:
        return ShapedTensor(Shape(owner.shape.sizes[::-1]))
    return ShapedTensor() if isinstance(owner, ShapedTensor) else UNKNOWN


def _tensors(values: Sequence[object]) -> Iterator[ShapedTensor]:
    for value in values:
        if isinstance(value, ShapedTensor):
            yield value
        elif isinstance(value, tuple):
            yield from _tensors(value)


def _is_guess(mismatch: Mismatch, taken: Sequence[ShapedTensor]) -> bool:
    """Tell whether a clash is about a number of dimensions that nobody has shown."""
    is_guessed = any(GUESS in str(tensor.shape) for tensor in taken)
    return is_guessed and mismatch.kind in ("rank", "dimension", "einsum", "concat", "view")
