"""What weights begin with: one constant, or random numbers of some spread."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.layer_parts import PARAMETER
from traindx.analysis.program.execution.values import (
    Answer,
    Items,
    Part,
    Result,
    Value,
    constant,
    depends_on,
)
from traindx.analysis.program.training.acts import Do, model_of
from traindx.analysis.program.training.covered_parameters import covered_parameters
from traindx.analysis.program.training.layers import (
    is_module,
    is_parameter,
    layer_kind,
    parts_of,
    registered,
    setting,
)
from traindx.analysis.program.training.linearity import WEIGHTED
from traindx.analysis.program.training.operations import (
    is_in_place,
    operation_name,
    operation_of,
)
from traindx.analysis.program.training.settings import one_number

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Program, Story

RECURRENT = frozenset({"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"})

CONSTANTS = {"zeros_": 0.0, "ones_": 1.0, "zero_": 0.0}
MADE = {"torch.zeros": 0.0, "torch.zeros_like": 0.0, "torch.ones": 1.0}
LISTS = (".parameters", ".named_parameters")
PRODUCTS = frozenset({"matmul", "linear", "mm", "bmm", "einsum"})
# what weights or numbers go through on their way to the next product, one operand each
ALONG = frozenset(
    {"t", "transpose", "permute", "view", "reshape", "relu", "gelu", "silu", "tanh", "sigmoid",
     "leaky_relu", "elu", "dropout", "batch_norm", "layer_norm", "flatten", "contiguous", "to",
     "float", "mul", "div", "max_pool2d", "avg_pool2d", "identity", "getitem", "squeeze",
     "unsqueeze", "group_norm", "mean", "adaptive_avg_pool2d", "dropout2d"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Fill:
    """A weight, or all weights of a model, filled with one value and not written again."""

    owner: Value  # a layer, a parameter, or a whole model
    event: ProgramEvent
    value: float
    is_all: bool = False  # every parameter of the owner
    model: Value | None = None  # of which a loop over the parameters fills this one


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """A weight that is drawn at random and not written again."""

    owner: Value  # a layer or a parameter
    event: ProgramEvent
    mean: float
    std: float  # of one weight; of a rule that knows the width, times the root of it
    is_relative: bool = False

    def gain(self, fan: int) -> float:
        """How much the spread of a signal grows by so many of these weights."""
        return self.std if self.is_relative else math.hypot(self.mean, self.std) * math.sqrt(fan)


def fills(story: Story) -> list[Fill]:
    """Return the weights that a program leaves at one constant where it builds its models."""
    found: list[Fill] = []
    for owner, target, event in story.recall(_last_writes):
        is_all = isinstance(target, Result) and not is_weight(target)
        value = _constant(event)
        if value is not None and _is_covered(event, target):
            found.append(Fill(owner, event, value, model=_looped(event)))
            continue
        is_some = any(g.test is not None and depends_on(g.test, target) for g in event.guards)
        if value is not None and not is_some and not (is_all and event.guards):
            found.append(Fill(owner, event, value, is_all))
    return found


def draws(story: Story) -> list[Draw]:
    """Return the weights that a program leaves at random numbers of a spread in sight."""
    found: list[Draw] = []
    for owner, target, event in story.recall(_last_writes):
        is_one = is_weight(owner) or isinstance(target, Part)
        is_sure = not event.guards or _is_covered(event, target)
        spread = _spread(story, event) if is_one and is_sure else None
        if spread is not None:
            found.append(Draw(owner, event, *spread))
    return found


def _last_writes(story: Story) -> list[tuple[Value, Value, ProgramEvent]]:
    """Return what is written into each weight last, before anything is loaded into it."""
    found: dict[int, tuple[Value, Value, ProgramEvent]] = {}
    for event in story.events:
        target = _written(event)
        covered = None if target is None else covered_parameters(event, target)
        for parameter in covered or ():
            if (owner := _owner(parameter)) is not None:
                found.pop(id(owner), None)
                found[id(owner)] = (owner, parameter, event)
        if covered is not None:
            continue
        owner = None if target is None else _owner(target)
        if target is not None and owner is not None:
            found.pop(id(owner), None)
            found[id(owner)] = (owner, target, event)
            continue
        loaded = event.receiver if event.name == ".load_state_dict" else None
        for part in () if loaded is None else registered(loaded):
            found.pop(id(part), None)
    return list(found.values())


def _is_covered(event: ProgramEvent, target: Value) -> bool:
    """Tell whether an event writes to more than one parameter, this among them, one by one."""
    written = _written(event)
    return written is not None and written is not target and not is_weight(target)


def _looped(event: ProgramEvent) -> Value | None:
    """The model over whose parameters an event's loop goes."""
    written = _written(event)
    return None if written is None else model_of(written)


# the mean and spread that are drawn from where none is given, and where they stand
NORMAL = frozenset({"normal_", "trunc_normal_"})
UNIT = {"torch.randn": (0.0, 1.0), "torch.rand": (0.5, 12**-0.5),
        "torch.randn_like": (0.0, 1.0), "torch.rand_like": (0.5, 12**-0.5)}  # fmt: skip


def _spread(story: Story, event: ProgramEvent) -> tuple[float, float, bool] | None:
    """Return the mean and standard deviation that a weight is drawn with."""
    if is_weight(event.result) and isinstance(event.result, Result):
        is_tensor = not is_parameter(event.result)
        return _made_spread(story, event.result if is_tensor else event.result.args[0])
    if event.act is EventForm.STORE:
        return _made_spread(story, event.args[0])
    last = event.name.rsplit(".", 1)[-1]
    first = 1 if event.name.startswith("torch.nn.init.") else 0
    if last in NORMAL:
        numbers = _numbers(story, event, (("mean", first, 0.0), ("std", first + 1, 1.0)))
        return None if numbers is None else (*numbers, False)
    if last == "uniform_":
        names = ("a", "b") if first else ("from", "to")
        ends = _numbers(story, event, ((names[0], first, 0.0), (names[1], first + 1, 1.0)))
        return None if ends is None else (sum(ends) / 2, abs(ends[1] - ends[0]) / 12**0.5, False)
    if last in ("xavier_normal_", "xavier_uniform_", "orthogonal_"):
        gain = _numbers(story, event, (("gain", 1, 1.0), ("gain", 1, 1.0)))
        return None if gain is None else (0.0, gain[0], True)
    return None


def _numbers(
    story: Story, event: ProgramEvent, places: tuple[tuple[str, int, float], ...]
) -> tuple[float, float] | None:
    """Return two arguments of a call that are numbers, or their defaults."""
    found: list[float] = []
    for name, position, default in places:
        given = event.argument(name, position)
        number = default if given is None else one_number(story, given)
        if number is None:
            return None
        found.append(number)
    return found[0], found[1]


def _made_spread(story: Story, made: Value) -> tuple[float, float, bool] | None:
    """The spread of new random numbers, times a number where one stands beside them."""
    if isinstance(made, Result) and made.maker in UNIT:
        return (*UNIT[made.maker], False)
    operation = operation_of(made)
    if operation is None or operation.name not in ("mul", "div") or len(operation.operands) != 2:
        return None
    for drawn, other in (operation.operands, operation.operands[::-1]):
        spread = _made_spread(story, drawn) if isinstance(drawn, Result) else None
        factor = one_number(story, other)
        if (
            spread is None
            or not factor
            or (operation.name == "div" and other is operation.operands[0])
        ):
            continue
        factor = factor if operation.name == "mul" else 1 / factor
        return spread[0] * factor, spread[1] * abs(factor), False
    return None


# what sums up products of a weight, turns it, or only reads it off
PLAIN_USES = frozenset(
    {"matmul", "mm", "bmm", "linear", "einsum", "conv1d", "conv2d", "conv3d", "t", "transpose",
     "permute", "unsqueeze", "view", "reshape", "embedding", "getitem", "norm", "pow", "sum", "abs",
     "mean", "detach", "clone", "addmm"}
)  # fmt: skip


def is_rescaled(story: Story, weight: Value) -> bool:
    """Tell whether a parameter may be used at another scale than its own: divided, normalised.

    One that nothing uses in sight may be.
    """
    uses = [use for use in story.made_from(weight) if isinstance(use, Result)]
    is_plain = bool(uses) and all(operation_name(u.maker) in PLAIN_USES for u in uses)
    return is_weight(weight) and not is_plain


def fan_in(story: Story, owner: Value) -> int | None:
    """Return how many numbers a weight sums up, at least; None where that is not in sight."""
    kind = layer_kind(owner)
    if kind == "Linear":
        return _whole(story, setting(owner, "in_features"))
    if kind.startswith("Conv"):
        channels = _whole(story, setting(owner, "in_channels"))
        return None if channels is None else channels * _kernel(story, owner, int(kind[-2]))
    made: Value | None = owner.inputs[0] if is_parameter(owner) and owner.inputs else owner
    while isinstance(made, Result) and made.maker not in UNIT and made.args:
        made = next((v for v in made.args if isinstance(v, Result)), None)
    sizes = [_whole(story, v) for v in made.args] if isinstance(made, Result) else []
    known = [size for size in sizes if size is not None]
    if len(known) != 2 or len(sizes) != 2:
        return None
    summed = _summed_axis(story, owner)
    return min(known) if summed is None else known[summed]


def _summed_axis(story: Story, weight: Value) -> int | None:
    """Return the axis of a matrix that its products sum over; None where none is in sight."""
    for event in story.events:
        operation = operation_of(event.result) if event.act is EventForm.CALL else None
        if operation is None or len(operation.operands) < 2:
            continue
        first, second = operation.operands[:2]
        if operation.name in ("matmul", "linear") and second is weight:
            return 0 if operation.name == "matmul" else 1
        if operation.name == "matmul" and first is weight:
            return 1
    return None


def _kernel(story: Story, layer: Value, dims: int) -> int:
    given = setting(layer, "kernel_size")
    number = _whole(story, given)
    if number is not None:
        return int(number**dims)
    sizes = [_whole(story, v) or 1 for v in given.members] if isinstance(given, Items) else []
    return math.prod(sizes)


def _whole(story: Story, value: Value | None) -> int | None:
    number = one_number(story, value)
    return int(number) if number is not None and number == int(number) else None


def _written(event: ProgramEvent) -> Value | None:
    """Return the tensor that an event writes into."""
    target: Value | None = None
    if event.act is EventForm.STORE and event.name in ("weight", "data"):
        owner = event.receiver
        target = Part(owner, "weight") if event.name == "weight" and owner is not None else owner
    elif event.name.startswith("torch.nn.init."):
        target = event.argument("tensor", 0)
    elif is_weight(event.result) and event.result is not None and not event.is_own:
        target = event.result
    elif is_in_place(event.name) and event.name != ".requires_grad_":
        target = event.receiver if event.receiver is not None else event.argument("input", 0)
    while isinstance(target, Part) and target.key == "data":
        target = target.of
    return target if target is None else target.fields.get(PARAMETER, target)


def is_weight(value: Value | None) -> bool:
    """Tell whether a value is a parameter, or a new tensor that is made to be trained."""
    is_new = isinstance(value, Result) and value.maker.startswith("torch.") and bool(value.args)
    is_asked = isinstance(value, Result) and constant(value.kwargs.get("requires_grad")) is True
    return is_parameter(value) or (is_new and is_asked and not is_module(value))


def _owner(target: Value) -> Value | None:
    """Return the layer whose weight a tensor is, the parameter itself, or the whole model."""
    if is_weight(target):
        return target
    if isinstance(target, Part) and target.key == "weight" and is_module(target.of):
        return target.of
    drawn: Value = target
    while isinstance(drawn, Part):
        drawn = drawn.of
    if isinstance(drawn, Result) and drawn.maker == "builtins.next" and drawn.args:
        inner = drawn.args[0]
        is_list = isinstance(inner, Result) and inner.maker in LISTS
        return (
            model_of(inner) or (inner.receiver if isinstance(inner, Result) else None)
            if (is_list)
            else None
        )
    return None


def _constant(event: ProgramEvent) -> float | None:
    """Return the one value that an event fills a tensor with."""
    last = event.name.rsplit(".", 1)[-1]
    if is_parameter(event.result) and isinstance(event.result, Result) and event.result.args:
        first = event.result.args[0]
        return MADE.get(first.maker) if isinstance(first, Result) else None
    if event.act is EventForm.STORE:
        made = event.args[0]
        return MADE.get(made.maker) if isinstance(made, Result) else None
    if last in CONSTANTS:
        return CONSTANTS[last]
    given = event.argument("val", 1) if last == "constant_" else event.argument("value", 0)
    number = constant(given) if last in ("constant_", "fill_") else None
    is_number = isinstance(number, (int, float)) and not isinstance(number, bool)
    return float(number) if is_number and isinstance(number, (int, float)) else None


def successions(events: Sequence[ProgramEvent]) -> Iterator[tuple[Value, Value]]:
    """Yield the weights that are multiplied one directly after another, in whatever form."""
    seen: set[tuple[int, int]] = set()
    for event in events:
        for weight, given in _products(event.result):
            before = _last_product(given)
            for first in () if before is None else (w for w, _ in _products(before)):
                if (id(first), id(weight)) not in seen and first is not weight:
                    seen.add((id(first), id(weight)))
                    yield first, weight


def _products(value: Value | None) -> list[tuple[Value, Value]]:
    """Return the weights that a value is a product with, each with the other factor."""
    if not isinstance(value, Result):
        return []
    if value.maker == "()" and layer_kind(value.receiver) in WEIGHTED and value.args:
        return [] if value.receiver is None else [(value.receiver, value.args[0])]
    operation = operation_of(value)
    if operation is None or operation.name not in PRODUCTS:
        return []
    factors = [(_plain(v), v) for v in operation.operands]
    return [
        (plain, other)
        for plain, factor in factors
        if is_parameter(plain)
        for other in operation.operands
        if other is not factor
    ]


def _plain(value: Value) -> Value:
    """Look through transposes of a weight."""
    while True:
        operation = operation_of(value)
        if isinstance(value, Part) and value.key in ("T", "mT", "data"):
            value = value.of
        elif operation is not None and operation.name in ("t", "transpose", "permute"):
            value = operation.operands[0]
        else:
            return value


def _last_product(value: Value, depth: int = 30) -> Value | None:
    """Return the product that a value comes from with no other in between."""
    while depth:
        depth -= 1
        if _products(value):
            return value
        operation = operation_of(value)
        if operation is None or operation.name not in ALONG or not operation.operands:
            return None
        value = operation.operands[0]
    return None


def constant_weights(program: Program) -> Iterator[tuple[Fill, Fill | None]]:
    """Yield fills of weights that follow each other with one value each, and the second of them.

    There is no second where one fill is of every parameter of a model that is trained.
    """
    pairs = list(_followers(program))
    seen: set[object] = set()
    for story in program.stories:
        filled = fills(story)
        trains = bool(story.does(Do.BACKWARD))
        for fill in filled:
            if fill.event.node in seen:
                continue
            whole = fill.owner if fill.is_all else fill.model
            is_left = whole is not None and story.escapes(whole) is not Answer.YES
            if fill.model is not None and not (is_left and trains):
                continue  # a sum or an average may begin at zero
            other = _partner(fill, filled, pairs)
            is_whole = fill.is_all or (other is None and _fills_all(fill, filled))
            is_left = is_left and is_whole
            if is_left and trains and whole is not None and _depth(whole) > 1:
                seen.add(fill.event.node)
                yield fill, None
            elif other is not None:
                seen |= {fill.event.node, other.event.node}
                yield fill, other


def _fills_all(fill: Fill, filled: Sequence[Fill]) -> bool:
    """Tell whether a loop over the parameters of a model fills every weight matrix of it."""
    if fill.model is None or fill.event.guards:
        return False
    done = {id(other.owner) for other in filled if other.event.node is fill.event.node}
    layers = [part for part in registered(fill.model) if layer_kind(part) in WEIGHTED]
    return bool(layers) and all(id(layer) in done for layer in layers)


def _followers(program: Program) -> Iterator[tuple[Value, Value]]:
    """Yield the weights of which one directly follows another, by calls or in a chain."""
    for story in program.stories:
        yield from successions(story.events)
        for event in story.events:
            if layer_kind(event.result) == "Sequential" and isinstance(event.result, Result):
                layers = [p for p in parts_of(event.result) if layer_kind(p) in WEIGHTED]
                yield from pairwise(layers)


def _partner(
    fill: Fill, filled: Sequence[Fill], pairs: Sequence[tuple[Value, Value]]
) -> Fill | None:
    """Return another constant weight that directly follows, or is followed by, a constant one."""
    for other in filled:
        is_pair = any(a is fill.owner and b is other.owner for a, b in pairs)
        if is_pair and not fill.is_all and not other.is_all:
            return other
    return None


def _depth(model: Value) -> int:
    """Return how many weight matrices are behind each other; one that recurs counts twice."""
    kinds = [layer_kind(part) for part in registered(model)]
    return sum(k in WEIGHTED for k in kinds) + 2 * sum(k in RECURRENT for k in kinds)
