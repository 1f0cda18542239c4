"""What weights begin with: which of them are filled with one constant and left so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx.analysis.program.execution.events import EventForm, ProgramEvent
from traindx.analysis.program.execution.values import (
    Part,
    Result,
    Value,
    constant,
    depends_on,
)
from traindx.analysis.program.training.acts import model_of
from traindx.analysis.program.training.layers import is_module, is_parameter, layer_kind, registered
from traindx.analysis.program.training.linearity import WEIGHTED
from traindx.analysis.program.training.operations import is_in_place, operation_of

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


def fills(events: Sequence[ProgramEvent]) -> list[Fill]:
    """Return the weights that a program leaves at one constant where it builds its models."""
    found: dict[int, Fill] = {}
    for event in events:
        target = _written(event)
        owner = None if target is None else _owner(target)
        if target is None or owner is None:
            loaded = event.receiver if event.name == ".load_state_dict" else None
            for part in () if loaded is None else registered(loaded):
                found.pop(id(part), None)
            continue
        is_all = isinstance(target, Result) and not is_parameter(target)
        value = _constant(event)
        is_some = any(g.test is not None and depends_on(g.test, target) for g in event.guards)
        found.pop(id(owner), None)
        if value is not None and not is_some and not (is_all and event.guards):
            found[id(owner)] = Fill(owner, event, value, is_all)
    return list(found.values())


def _written(event: ProgramEvent) -> Value | None:
    """Return the tensor that an event writes into."""
    target: Value | None = None
    if event.act is EventForm.STORE and event.name in ("weight", "data"):
        owner = event.receiver
        target = Part(owner, "weight") if event.name == "weight" and owner is not None else owner
    elif event.name.startswith("torch.nn.init."):
        target = event.argument("tensor", 0)
    elif is_parameter(event.result) and event.result is not None and not event.is_own:
        target = event.result
    elif is_in_place(event.name) and event.name != ".requires_grad_":
        target = event.receiver if event.receiver is not None else event.argument("input", 0)
    while isinstance(target, Part) and target.key == "data":
        target = target.of
    return target


def _owner(target: Value) -> Value | None:
    """Return the layer whose weight a tensor is, the parameter itself, or the whole model."""
    if is_parameter(target):
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
