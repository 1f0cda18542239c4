"""Weight decay: how much of a weight each step of an optimizer takes away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traindx.analysis.program.execution.values import Result, Value
from traindx.analysis.program.training.settings import one_number
from traindx.analysis.program.training.step_sizes import RATES, groups_of

if TYPE_CHECKING:
    from traindx.analysis.program.training.program import Story

# that add it to a gradient which they then divide by its own size
INSIDE = frozenset({"Adam", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adamax"})


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
        return self.kind in INSIDE


def decays_of(story: Story) -> Iterator[Decay]:
    """Yield the weight decays that optimizers and their groups are given as numbers."""
    for group in groups_of(story):
        value = group.given("weight_decay")
        amount, rate = one_number(story, value), group.rate
        if value is not None and amount is not None and rate is not None and group.kind in RATES:
            yield Decay(group.optimizer, value, amount, rate)
