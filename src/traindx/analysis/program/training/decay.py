"""Weight decay: how much of a weight each step of an optimizer takes away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.layer_parts import PARAMETER
from traindx.analysis.program.execution.values import (
    Items,
    Known,
    Part,
    Result,
    Value,
    constant,
)
from traindx.analysis.program.training.layers import is_module, is_parameter
from traindx.analysis.program.training.losses import is_mean
from traindx.analysis.program.training.operations import Operation, operation_name, operation_of
from traindx.analysis.program.training.ownership import LISTS
from traindx.analysis.program.training.settings import one_number
from traindx.analysis.program.training.step_sizes import RATES, groups_of, is_adaptive
from traindx.analysis.program.training.updates import updates

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# that add it to a gradient which they then divide by its own size
FLAT = frozenset({"view", "reshape", "flatten", "float"})
Terms = Iterator[tuple[float, Value]]
USUAL = 0.1
INSIDE = frozenset({"Adam", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adamax"})


@dataclass(frozen=True, eq=False)
class Decay:
    """A weight decay that an optimizer of torch's applies, and the learning rate beside it.

    `by` is what asks for it where the optimizer does not: a penalty in the loss.
    """

    optimizer: Result
    value: Value
    amount: float
    rate: float
    by: Value | None = None
    is_proportional: bool = True  # to the weight; else the same for all

    @property
    def place(self) -> Value:
        return self.optimizer if self.by is None else self.by

    @property
    def kind(self) -> str:
        return self.optimizer.maker.rsplit(".", 1)[-1]

    @property
    def is_usual(self) -> bool:
        """Tell whether it is one that AdamW trains well with: its rate is to blame then."""
        return self.kind == "AdamW" and self.by is None and self.amount <= USUAL

    @property
    def share(self) -> float:
        """The share of each weight that a step takes away."""
        return self.amount * self.rate

    @property
    def is_gradient(self) -> bool:
        """Tell whether it is added to a gradient that is then divided by its own size."""
        return self.kind in INSIDE or (self.by is not None and is_adaptive(self.optimizer))


def decays_of(story: Story) -> Iterator[Decay]:
    """Yield the weight decays that optimizers and their groups are given as numbers."""
    for group in groups_of(story):
        value = group.given("weight_decay")
        amount, rate = one_number(story, value), group.rate
        if value is not None and amount is not None and rate is not None and group.kind in RATES:
            yield Decay(group.optimizer, value, amount, rate)
    groups = list(groups_of(story))
    for update in updates(story):
        optimizer, loss = update.optimizer, update.backward.subject
        rates = [g.rate for g in groups if g.optimizer is optimizer]
        rate = next((r for r in rates if r is not None), None)
        if loss is None or rate is None or not isinstance(optimizer, Result):
            continue
        for penalty in penalties(story, loss):
            made = (optimizer, penalty.term, penalty.amount, rate)
            yield Decay(*made, by=penalty.term, is_proportional=penalty.is_square)


@dataclass(frozen=True, eq=False)
class Penalty:
    """A term of a loss that is large where weights are: what it adds to the gradient of each.

    `is_square` says that this is `amount` times the weight, else `amount` whatever the weight.
    """

    term: Value
    amount: float
    is_square: bool


def penalties(story: Story, loss: Value) -> list[Penalty]:
    """Return the penalties on weights beside a loss that is averaged over the batch."""
    terms = list(_weighted(story, loss))
    found = [(term, factor, _penalised(story, term)) for factor, term in terms]
    if not any(known is None and is_mean(term) for term, _, known in found):
        return []
    return [
        Penalty(term, abs(factor * known[0]) * (2 if known[1] else 1), known[1])
        for term, factor, known in found
        if known is not None
    ]


def _weighted(story: Story, value: Value, factor: float = 1.0, depth: int = 8) -> Terms:
    """The terms of a sum, each with the number before it."""
    operation = operation_of(value) if depth else None
    if operation is not None and operation.name in ("add", "sub") and len(operation.operands) == 2:
        for operand in operation.operands:
            yield from _weighted(story, operand, factor, depth - 1)
    elif operation is not None and operation.name == "mul" and len(operation.operands) == 2:
        numbers = [one_number(story, v) for v in operation.operands]
        rest = [v for v, n in zip(operation.operands, numbers, strict=True) if n is None]
        if len(rest) == 1:
            known = next(n for n in numbers if n is not None)
            yield from _weighted(story, rest[0], factor * known, depth - 1)
    elif not isinstance(value, Known):
        yield factor, value


def _penalised(story: Story, value: Value, depth: int = 12) -> tuple[float, bool] | None:
    """The number before a sum of squares, or of absolute values, of parameters; and which it is."""
    if depth == 0:
        return None
    if isinstance(value, Items):
        return _alike([_penalised(story, v, depth - 1) for v in value.members])
    operation = operation_of(value)
    if operation is None or not operation.operands:
        return None
    name, first = operation.name, operation.operands[0]
    if name in ("sum", "builtins.sum", "stack"):
        inner = _elements(story, first)
        return _penalised(story, first, depth - 1) if inner is None else inner
    if name == "add":
        parts = [v for v in operation.operands if constant(v) != 0 or not isinstance(v, Known)]
        return _alike([_penalised(story, v, depth - 1) for v in parts])
    if name == "mul":
        numbers = [one_number(story, v) for v in operation.operands]
        known = [n for n in numbers if n is not None]
        rest = [v for v, n in zip(operation.operands, numbers, strict=True) if n is None]
        inner = _penalised(story, rest[0], depth - 1) if len(rest) == len(known) == 1 else None
        return None if inner is None else (inner[0] * known[0], inner[1])
    if name == "pow" and constant(operation.operands[-1]) == 2:
        norm = operation_of(first)
        is_norm = norm is not None and norm.name == "norm" and _order(norm) == 2
        return (1.0, True) if is_norm and norm and is_weight(norm.operands[0]) else None
    is_sum = name == "norm" and _order(operation) == 1
    return (1.0, False) if is_sum and is_weight(first) else None


def _alike(found: list[tuple[float, bool] | None]) -> tuple[float, bool] | None:
    """What all parts of a sum are, where they are the same."""
    known = set(found)
    return known.pop() if len(known) == 1 else None


def _order(norm: Operation) -> object:
    """The order of a norm: 2 where none is given."""
    given = norm.settings.get("p") or (norm.operands[1] if len(norm.operands) > 1 else None)
    return 2 if given is None else constant(given)


def _elements(story: Story, value: Value) -> tuple[float, bool] | None:
    """Tell whether a tensor holds the squares, or the absolute values, of a parameter."""
    operation = operation_of(value)
    if operation is None or not operation.operands or not is_weight(operation.operands[0]):
        return None
    is_squared = operation.name == "pow" and constant(operation.operands[-1]) == 2
    is_product = operation.name == "mul" and operation.operands[0] is operation.operands[-1]
    if is_squared or is_product or operation.name == "square":
        return 1.0, True
    return (1.0, False) if operation.name == "abs" else None


def is_weight(value: Value) -> bool:
    """Tell whether a value is a parameter out of a model's list, or the weight of a layer."""
    while operation_of(value) is not None and operation_name(getattr(value, "maker", "")) in FLAT:
        value = value.inputs[0]
    if PARAMETER in value.fields or is_parameter(value):
        return True
    if isinstance(value, Part) and value.key == "weight":
        return is_module(value.of)
    drawn = value.of if isinstance(value, Part) and value.key == 1 else value
    is_drawn = isinstance(drawn, Result) and drawn.maker == "builtins.next" and bool(drawn.args)
    listing = drawn.inputs[0] if is_drawn else None
    return isinstance(listing, Result) and listing.maker in LISTS
