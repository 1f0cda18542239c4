"""Weight decay: how much of a weight each step of an optimizer takes away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Items, Result, Table, Value, options_of
from traindx.analysis.program.training.kinds import Kind
from traindx.analysis.program.training.ownership import parameters_given
from traindx.analysis.program.training.settings import constants_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# the learning rate where none is given
RATES = {"Adam": 1e-3, "AdamW": 1e-3, "SGD": 1e-3, "RMSprop": 1e-2, "NAdam": 2e-3, "RAdam": 1e-3}
ADAPTIVE = frozenset({"Adam", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adamax"})


@dataclass(frozen=True, eq=False)
class Decay:
    """A weight decay that an optimizer of torch's is made with, and the learning rate beside it."""

    optimizer: Result
    value: Value
    amount: float
    rate: float

    @property
    def kind(self) -> str:
        return self.optimizer.maker.rsplit(".", 1)[-1]

    @property
    def share(self) -> float:
        """The share of each weight that a step takes away."""
        return self.amount * self.rate

    @property
    def is_gradient(self) -> bool:
        """Tell whether it is added to a gradient that is then divided by its own size."""
        return self.kind in ADAPTIVE


def decays_of(story: Story) -> Iterator[Decay]:
    """Yield the weight decays that optimizers and their groups are given as numbers."""
    for optimizer in story.made(Kind.OPTIMIZER):
        if not isinstance(optimizer, Result) or not optimizer.maker.startswith("torch.optim."):
            continue
        kind = optimizer.maker.rsplit(".", 1)[-1]
        if kind not in RATES or "**" in optimizer.kwargs:
            continue
        given = optimizer.kwargs.get("lr") or next(iter(optimizer.args[1:2]), None)
        own = _number(story, given) if given is not None else RATES[kind]
        for value, rate in _given(story, optimizer, own):
            amount = _number(story, value)
            if amount is not None and rate is not None:
                yield Decay(optimizer, value, amount, rate)


def _given(
    story: Story, optimizer: Result, own: float | None
) -> Iterator[tuple[Value, float | None]]:
    """The decay of the optimizer and of its groups, each with its learning rate."""
    groups = parameters_given(optimizer)
    tables = groups.members if isinstance(groups, Items) else []
    for table in tables:
        if isinstance(table, Table) and "weight_decay" in table.fields:
            rate = table.fields.get("lr")
            yield table.fields["weight_decay"], own if rate is None else _number(story, rate)
    if "weight_decay" in optimizer.kwargs:
        yield optimizer.kwargs["weight_decay"], own


def _number(story: Story, value: Value | None) -> float | None:
    """Return the one number that a value is."""
    if value is None or len(options_of(value)) != 1:
        return None
    found = constants_of(story, value)
    is_one = len(found) == 1 and isinstance(found[0], (int, float))
    return float(found[0]) if is_one and isinstance(found[0], (int, float)) else None
