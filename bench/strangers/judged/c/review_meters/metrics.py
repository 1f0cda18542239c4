"""Bookkeeping used by the engine."""
from collections import OrderedDict, defaultdict


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.total, self.weight, self.trace = 0.0, 0, []

    def add(self, value, n=1):
        self.total = self.total + value * n
        self.weight += n
        self.trace.append(value)

    @property
    def avg(self):
        return self.total / max(self.weight, 1)

    def smooth(self, k=20):
        tail = self.trace[-k:]
        return sum(tail) / max(len(tail), 1)


class Board:
    """A set of meters that live for the whole run."""

    def __init__(self):
        self.meters = defaultdict(Meter)

    def log(self, n, **values):
        for name, value in values.items():
            self.meters[name].add(value, n)

    def line(self):
        items = OrderedDict(sorted(self.meters.items()))
        return "  ".join(f"{k} {float(m.avg):.4f} (last {float(m.smooth()):.4f})" for k, m in items.items())
