"""Loss scaling in the manner of jmp: small immutable values instead of objects with state."""
from typing import NamedTuple

import torch


class DynamicLossScale(NamedTuple):
    value: float = 2.0 ** 22
    counter: int = 0
    period: int = 200
    factor: float = 2.0

    def scale(self, loss):
        return loss * self.value

    def unscale(self, grads):
        return [g.float() / self.value for g in grads]

    def adjust(self, grads_finite):
        if not grads_finite:
            return self._replace(value=max(1.0, self.value / self.factor), counter=0)
        if self.counter + 1 == self.period:
            return self._replace(value=self.value * self.factor, counter=0)
        return self._replace(counter=self.counter + 1)


def all_finite(grads):
    return all(bool(torch.isfinite(g).all()) for g in grads)
