"""On which device tensors are: the CPU, or the accelerator that a program may choose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.iteration import wrapped
from traindx.analysis.program.execution.library import PREPARES
from traindx.analysis.program.execution.values import (
    Choice,
    Items,
    Known,
    Part,
    Result,
    Value,
    options_of,
)
from traindx.analysis.program.training.facts.batches import drawn
from traindx.analysis.program.training.facts.certainty import is_certain, makers, makes
from traindx.analysis.program.training.facts.dtypes import WITH_WEIGHTS
from traindx.analysis.program.training.facts.elements import dtype_named, is_device
from traindx.analysis.program.training.facts.unmoved_models import (
    moves_what_it_prepares,
    prepared_by,
    stays_on_cpu,
)
from traindx.analysis.program.training.layers import is_layer, is_module, layer_kind, registered
from traindx.analysis.program.training.operations import operation_name, operation_of
from traindx.analysis.program.training.tensors import FACTORIES, is_accelerator, may_be_accelerator

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

# what sets devices out of our sight
OUT_OF_SIGHT = frozenset(
    {"torch.set_default_device", "torch.set_default_tensor_type", "torch.nn.DataParallel",
     "torch.nn.parallel.DataParallel"}
)  # fmt: skip
ALIKE = frozenset({"zeros_like", "ones_like", "randn_like", "rand_like", "full_like", "empty_like"})
MEETINGS = frozenset(
    {"add", "sub", "mul", "div", "pow", "matmul", "cat", "stack", "where", "lt", "le", "gt", "ge",
     "eq", "ne", "maximum", "minimum", "mse_loss", "cross_entropy", "nll_loss", "l1_loss",
     "binary_cross_entropy", "binary_cross_entropy_with_logits", "smooth_l1_loss", "gather",
     "masked_fill", "getitem", "huber_loss", "cdist", "cosine_similarity", "kl_div", "lerp", "dot",
     "outer", "mv", "pairwise_distance", "triplet_margin_loss", "scatter_add", "index_add"}
)  # fmt: skip
PASSED = frozenset(
    {"view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "flatten", "contiguous",
     "clone", "detach", "expand", "repeat", "t", "relu", "clamp", "abs", "neg", "float", "long",
     "half", "double", "bool", "int", "mean", "sum", "softmax", "log_softmax", "sigmoid", "tanh",
     "exp", "log", "sqrt", "cumsum", "cumprod", "argmax", "dropout", "square", "normalize", "flip",
     "sin", "cos", "roll", "tril", "triu", "split", "chunk", "unbind", "max", "min", "std", "var",
     "one_hot", "type"}
)  # fmt: skip
WEIGHTS = ("weight", "pos_weight")  # of a loss, that stay where they were made
DATA = frozenset({"tensor", "as_tensor", "from_numpy", "FloatTensor", "LongTensor", "Tensor"})


class TensorPlace(Enum):
    """Where a tensor is."""

    CPU = "the CPU"
    ACCELERATOR = "the device that the program chooses"


ACCELERATOR = TensorPlace.ACCELERATOR


@dataclass(frozen=True, slots=True, eq=False)
class DeviceClash:
    """An operation on tensors of two devices, and the one that stays on the CPU."""

    event: ProgramEvent
    left_behind: Value
    text: str


class Places:
    """The devices of the tensors of one story."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self._known: dict[Value, TensorPlace | None] = {}
        self._made = makers(story)
        self._buffers: set[int] = set()
        self._prepared: set[int] = set()
        self._moves: list[tuple[int, Value, TensorPlace]] = []
        for event in story.events:
            if event.name == ".register_buffer":
                self._buffers |= {id(v) for v in (*event.args, *event.kwargs.values())}
            if event.name in (".to", ".cuda", ".cpu") and is_module(event.receiver):
                place = _moved_to(event)
                if place is not None and event.receiver is not None:
                    self._moves.append((event.order, event.receiver, place))
            for value in prepared_by(event):
                self._prepared.add(id(value))
                self._moves.append((event.order, value, TensorPlace.ACCELERATOR))

    def of(self, value: Value | None) -> TensorPlace | None:
        """Return where a tensor is; None where that is not known."""
        if value is None or id(value) in self._buffers:
            return None
        if value not in self._known:
            self._known[value] = None  # ends a circle
            self._known[value] = self._found(value)
        return self._known[value]

    def _found(self, value: Value) -> TensorPlace | None:
        if isinstance(value, Choice):
            found = {self.of(option) for option in value.options}
            return found.pop() if len(found) == 1 else None
        if isinstance(value, (Part, Result)):
            if self._is_prepared(value):
                return TensorPlace.ACCELERATOR
            batch = drawn(self.story, value)
            if batch is not None:
                inside = self.of(batch.value)
                return TensorPlace.CPU if batch.is_stacked and inside is None else inside
        if isinstance(value, Part):
            is_inside = isinstance(value.key, int) or value.key in ("T", "mT", "data", "values")
            return self.of(value.of) if is_inside else None
        return self._computed(value) if isinstance(value, Result) else None

    def _is_prepared(self, value: Value) -> bool:
        """Tell whether a value is a batch that an engine moves as it comes, or a part of one."""
        while isinstance(value, Part):
            value = value.of
        is_batch = isinstance(value, Result) and value.maker == "builtins.next"
        return is_batch and any(id(wrapped(v)) in self._prepared for v in value.inputs[:1])

    def _computed(self, value: Result) -> TensorPlace | None:
        if value.maker == "()":
            event = self._made.get(value)
            return None if event is None else self.layer(value.receiver, event)
        operation = operation_of(value)
        if operation is None:
            return None
        name, event = operation.name, self._made.get(value)
        if name in ("to", "cuda", "cpu") and event is not None:
            given = event.argument("device", 0)
            if isinstance(given, Part) and given.key == "device":
                return self._named(given)
            found = _moved_to(event)
            return found if found is not None or not event.args else self._kept(event)
        home, _, last = value.maker.rpartition(".")
        if home == "torch" and (last in FACTORIES or last in DATA):
            return self._created(value)
        if name in ALIKE and operation.operands and "device" not in value.kwargs:
            return self.of(operation.operands[0])
        if name == "getitem" or name in PASSED:
            return self.of(operation.operands[0]) if operation.operands else None
        return self._together(operation.operands) if name in MEETINGS else None

    def _kept(self, event: ProgramEvent) -> TensorPlace | None:
        """A conversion of type leaves a tensor where it is."""
        is_type = all(dtype_named(a) is not None for a in event.args)
        return self.of(event.receiver) if is_type else None

    def _created(self, value: Result) -> TensorPlace | None:
        given = value.kwargs.get("device")
        event = self._made.get(value)
        is_around = event is None or any(_sets_device(c) for c in event.contexts)
        if given is None and value.maker.rsplit(".", 1)[-1] in DATA and value.args:
            inside = self.of(value.args[0])
            return inside or (None if is_around else TensorPlace.CPU)
        if given is None:
            return None if is_around or "**" in value.kwargs else TensorPlace.CPU
        return self._named(given)

    def _named(self, device: Value) -> TensorPlace | None:
        if isinstance(device, Part) and device.key == "device":
            is_setting = is_accelerator(device) and not isinstance(device.of, (Result, Part))
            return self.of(device.of) or (TensorPlace.ACCELERATOR if is_setting else None)
        return TensorPlace.ACCELERATOR if any(is_accelerator(o) for o in devices(device)) else None

    def _together(self, operands: Sequence[Value]) -> TensorPlace | None:
        inside = [v for o in operands for v in (o.members if isinstance(o, Items) else (o,))]
        found = {self.of(v) for v in inside if not _is_number(v)}
        if TensorPlace.ACCELERATOR in found:
            return TensorPlace.ACCELERATOR
        return found.pop() if len(found) == 1 else None

    def layer(self, layer: Value | None, event: ProgramEvent) -> TensorPlace | None:
        """Return where the weights of a layer are at an event; None where they never moved."""
        found = None
        for order, place in self._moves_of.get(id(layer), ()) if is_layer(layer) else ():
            if order < event.order:
                found = place
        return found

    @cached_property
    def _moves_of(self) -> dict[int, list[tuple[int, TensorPlace]]]:
        """Where each layer is moved to with the models that it is in, in order."""
        found: dict[int, list[tuple[int, TensorPlace]]] = {}
        inside: dict[int, list[Value]] = {}
        for order, owner, place in self._moves:
            if id(owner) not in inside:
                inside[id(owner)] = registered(owner)
            for part in inside[id(owner)]:
                found.setdefault(id(part), []).append((order, place))
        return found


def _is_number(value: Value) -> bool:
    """Tell whether a value is a number of Python, which is on no device."""
    is_counted = isinstance(value, Result) and value.maker.startswith(("builtins.", "math."))
    is_drawn = isinstance(value, Result) and value.maker == "builtins.next"
    return isinstance(value, Known) or (is_counted and not is_drawn)


def devices(value: Value) -> Iterator[Value]:
    """Yield what a device may be."""
    for option in options_of(value):
        if isinstance(option, Result) and option.maker == "torch.device" and option.args:
            yield from options_of(option.args[0])
        else:
            yield option


def _moved_to(event: ProgramEvent) -> TensorPlace | None:
    if event.name == ".cpu":
        return TensorPlace.CPU
    if event.name == ".cuda" or may_be_accelerator(event):
        given = event.argument("device", 0)
        is_type = given is not None and dtype_named(given) is not None
        return None if is_type else TensorPlace.ACCELERATOR
    given = event.argument("device", 0)
    named = [o.value for o in devices(given) if isinstance(o, Known)] if given else []
    return TensorPlace.CPU if named == ["cpu"] and is_device(given) else None


def _sets_device(context: Value) -> bool:
    is_known = isinstance(context, Result) and (
        operation_name(context.maker).rsplit(".", 1)[-1]
        in ("no_grad", "inference_mode", "autocast", "set_grad_enabled", "enable_grad")
    )
    return not is_known


def device_clashes(story: Story) -> Iterator[DeviceClash]:
    """Yield the operations that meet a tensor of the CPU and one of the accelerator."""
    if _is_moved_out_of_sight(story.program):
        return
    for event in story.events:
        if event.act is not EventForm.CALL or event.result is None:
            continue
        found = _of_event(story, event)
        if found is not None and is_certain(event):
            yield found


@lru_cache(maxsize=8)
def _is_moved_out_of_sight(program: Program) -> bool:
    """Tell whether something that is not in sight chooses the devices of a program."""
    events = (e for s in program.stories for e in s.events)
    return any(e.name in OUT_OF_SIGHT or _is_prepared_apart(e) or e.by_framework for e in events)


def _is_prepared_apart(event: ProgramEvent) -> bool:
    """Tell whether a library of which nobody knows what it moves is handed something."""
    return event.name[1:] in PREPARES and not moves_what_it_prepares(event)


def _of_event(story: Story, event: ProgramEvent) -> DeviceClash | None:
    is_loss = layer_kind(event.receiver).endswith("Loss")
    if event.name == "()" and is_layer(event.receiver) and event.args and not is_loss:
        if story.places.layer(event.receiver, event) is not TensorPlace.ACCELERATOR:
            return _of_model(story, event)
        for given in _inside(event.args):
            if story.places.of(given) is TensorPlace.CPU:
                text = "The model was moved to the device and its input stays on the CPU"
                return DeviceClash(event, given, text)
        return None
    operation = operation_of(event.result)
    if operation is None or operation.name not in MEETINGS or not makes(event):
        return None
    is_moved = story.places.layer(event.receiver, event) is not None
    weights = [] if is_moved else [v for k, v in operation.settings.items() if k in WEIGHTS]
    operands = [*_inside(operation.operands), *weights]
    if operation.name == "getitem":
        return _of_index(story, event, operands)
    placed = [(v, story.places.of(v)) for v in operands]
    if not any(p is TensorPlace.ACCELERATOR for _, p in placed):
        return None
    several = (v for v, p in placed if p is TensorPlace.CPU and _is_several(story, v))
    classes = operation.settings.get("weight")  # of a loss: one number for each class
    behind = (v for v, p in placed if p is TensorPlace.CPU and v is classes)
    left = next((v for found in (several, behind) for v in found), None)
    text = "A tensor of the CPU meets one of the device that the program chooses"
    return None if left is None else DeviceClash(event, left, text)


def _of_model(story: Story, event: ProgramEvent) -> DeviceClash | None:
    """A model that stays on the CPU is run on a tensor of the accelerator."""
    model = event.within[0] if event.within else event.receiver
    is_weighted = layer_kind(event.receiver) in WITH_WEIGHTS
    if model is None or not is_weighted or story.places.of(event.args[0]) is not ACCELERATOR:
        return None
    text = "The input is on the device and the model stays on the CPU"
    return DeviceClash(event, model, text) if stays_on_cpu(story, model, event) else None


def _inside(operands: Iterable[Value]) -> Iterator[Value]:
    for value in operands:
        yield from value.members if isinstance(value, Items) else (value,)


def _of_index(story: Story, event: ProgramEvent, operands: list[Value]) -> DeviceClash | None:
    """An index on the accelerator cannot point into a tensor of the CPU; the reverse can."""
    table, *keys = operands
    is_far = any(story.places.of(k) is TensorPlace.ACCELERATOR for k in keys)
    if not is_far or story.places.of(table) is not TensorPlace.CPU:
        return None
    return DeviceClash(event, table, "A tensor of the CPU is indexed from another device")


def _is_several(story: Story, value: Value) -> bool:
    """Tell whether a tensor has dimensions: one number alone meets tensors anywhere."""
    shape = story.shapes.shape(value)
    return shape is not None and bool(shape.sizes)
