"""Rows of layers that are one linear map: nothing between them bends what they pass on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx.analysis.program.execution.events import ProgramEvent
from traindx.analysis.program.execution.values import (
    Answer,
    Instance,
    Items,
    Part,
    Result,
    Value,
    origins,
)
from traindx.analysis.program.training.flow import Flow
from traindx.analysis.program.training.layers import layer_kind, size
from traindx.analysis.program.training.operations import operation_of

WEIGHTED = frozenset(
    {"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d",
     "ConvTranspose3d", "LazyLinear"}
)  # fmt: skip
# what maps a sum to the sum of what it maps: operations of any other name may bend
STRAIGHT = frozenset(
    {"batch_norm", "dropout", "dropout1d", "dropout2d", "dropout3d", "identity", "flatten",
     "unflatten", "avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
     "upsample", "view", "reshape", "permute", "transpose", "t", "squeeze", "unsqueeze",
     "contiguous", "getitem", "cat", "stack", "chunk", "split", "expand", "repeat", "mean", "sum",
     "add", "sub", "neg", "float", "to", "clone", "detach", "rearrange", "cuda", "cpu", "double",
     "avg_pool3d", "adaptive_avg_pool3d", "expand_as", "view_as", "reshape_as", "size", "dim"}
)  # fmt: skip
SCALES = frozenset({"mul", "div"})  # straight while only one side comes from a layer
PASSES = frozenset({"dropout", "dropout1d", "dropout2d", "identity"})  # the same numbers, or zero
SHAPE = frozenset({"size", "dim", "numel"})  # numbers about a tensor, not its own


@dataclass(frozen=True, slots=True, eq=False)
class LayerRow:
    """Layers one behind another, first to last, and the calls of them."""

    calls: tuple[ProgramEvent, ...]

    @property
    def layers(self) -> list[Result]:
        return [e.receiver for e in self.calls if isinstance(e.receiver, Result)]


class Linearity:
    """How the layers of one execution follow each other, where they may learn.

    A pass without gradients may be there for the sake of a size.
    """

    def __init__(self, events: tuple[ProgramEvent, ...], flow: Flow) -> None:
        self.flow = flow
        runs = (e for e in events if e.name == "()" and e.gradients is not Answer.NO)
        self.calls = [e for e in runs if layer_kind(e.receiver) in WEIGHTED]
        made = [e for e in events if e.result is not None]
        self._made_by = {id(e.result): e for e in sorted(made, key=_directness)}
        self._memo: dict[int, tuple[ProgramEvent, ...]] = {}

    def rows(self) -> Iterator[LayerRow]:
        """Yield every row of layers that no nonlinear operation stands in, ended by its last."""
        for event in self.calls:
            if event.result is not None:
                yield LayerRow(self._before(event.result))

    def chains(self) -> Iterator[LayerRow]:
        """Yield the rows in which each layer alone takes the output of the one before."""
        for first in self.calls:
            row = [first]
            while (after := self.next_layer(row[-1])) is not None and after not in row:
                row.append(after)
            yield LayerRow(tuple(row))

    def _before(self, value: Value, depth: int = 200) -> tuple[ProgramEvent, ...]:
        """Return the longest row of layers that a value comes from and nothing has bent."""
        if id(value) in self._memo or depth == 0:
            return self._memo.get(id(value), ())
        self._memo[id(value)] = ()
        operands: Sequence[Value] = ()
        own: tuple[ProgramEvent, ...] = ()
        if isinstance(value, (Part, Items)) and not _is_shape(value):
            operands = value.inputs
        elif isinstance(value, Result) and layer_kind(value.receiver) in WEIGHTED:
            event = self._made_by.get(id(value))
            operands, own = value.args[:1], () if event is None else (event,)
        elif self._is_straight(value):
            operation = operation_of(value)
            operands = () if operation is None else operation.operands
        before = max((self._before(v, depth - 1) for v in operands), key=len, default=())
        self._memo[id(value)] = (*before, *own)
        return self._memo[id(value)]

    def _is_straight(self, value: Value) -> bool:
        operation = operation_of(value)
        if operation is None or operation.name in SHAPE:
            return False
        if operation.name in SCALES:
            return sum(bool(self._before(v)) for v in operation.operands) <= 1
        return operation.name in STRAIGHT

    def is_bent(self, row: LayerRow) -> bool:
        """Tell whether a model does, or may do, something nonlinear to what its row computes."""
        if self._follows_layers(row.calls[0]):
            return True
        places = {event.node for event in row.calls}
        first = row.calls[0].result
        for value in self.flow.onward(first) if first is not None else ():
            event = self._made_by.get(id(value))
            if value is first or isinstance(value, (Part, Items)) or event is None:
                continue
            if self.flow.is_lost(value):
                continue  # an activation whose result nobody takes bends nothing
            is_layer = layer_kind(event.receiver) in WEIGHTED and event.name == "()"
            is_inside = bool(event.within) or event.node in places
            operation = operation_of(value)
            is_size = operation is not None and operation.name in SHAPE
            if is_inside and not (is_layer or is_size or event.is_own or self._is_straight(value)):
                return True
        return False

    def _follows_layers(self, call: ProgramEvent) -> bool:
        """Tell whether the same model runs other layers before a row: what bends is between."""
        model = model_around(call)
        before = (self._made_by.get(id(v)) for a in call.args for v in origins(a))
        others = (e for e in before if e is not None and layer_kind(e.receiver) in WEIGHTED)
        return any(e.receiver is not call.receiver and model_around(e) is model for e in others)

    def next_layer(self, call: ProgramEvent) -> ProgramEvent | None:
        """Return the call of the layer that alone takes the output of another, or None."""
        value = call.result
        while value is not None:
            users = [u for u in self.flow.users(value) if not _is_shape(u)]
            after = self._made_by.get(id(users[0])) if len(users) == 1 else None
            if after is None or after.result is None or _is_stored(self.flow, value, after):
                return None
            operation = operation_of(after.result)
            if after.name == "()" and layer_kind(after.receiver) in WEIGHTED:
                return after
            value = after.result if operation is not None and operation.name in PASSES else None
        return None


def _directness(event: ProgramEvent) -> int:
    """Tell how directly a call made its result: a model hands on what its last layer made."""
    made = event.result
    is_maker = isinstance(made, Result) and event.receiver is made.receiver
    return 0 if event.is_own else 1 + is_maker


def widens(layer: Value | None) -> bool:
    """Tell whether a layer has more outputs than inputs: one with fewer may just compress."""
    before, after = size(layer, "in_features"), size(layer, "out_features")
    return before is not None and after is not None and after > before


def expands(row: LayerRow) -> bool:
    """Tell whether two layers meet in a middle wider than both ends: no factorised map does."""
    first, second = row.layers
    start, middle, end = (
        size(first, "in_features"), size(first, "out_features"), size(second, "out_features")
    )  # fmt: skip
    is_known = start is not None and middle is not None and end is not None
    return is_known and middle > max(start, end)  # type: ignore[operator, type-var]


def model_around(event: ProgramEvent) -> Instance | None:
    """Return the outermost model in whose forward pass an event is."""
    found = event.within[0] if event.within else None
    return found if isinstance(found, Instance) else None


def _is_shape(value: Value) -> bool:
    if isinstance(value, Part):
        return value.key in ("shape", "dtype", "device", "ndim")
    operation = operation_of(value)
    return operation is not None and operation.name in SHAPE


def _is_stored(flow: Flow, value: Value, after: ProgramEvent) -> bool:
    """Tell whether anything but the next computation takes a value, such as a return."""
    others = (e for e in flow.takers(value) if e is not after and not e.is_own)
    return any(layer_kind(e.receiver) != "Sequential" for e in others)  # it hands it to its first
