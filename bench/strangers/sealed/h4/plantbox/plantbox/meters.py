class Average:
    """Weighted running mean."""

    def __init__(self, name):
        self.name = name
        self.reset()
        self.weight = 0

    def reset(self):
        self.total = 0.0
        self.count = 0

    def add(self, value, n=1):
        self.total += float(value) * n
        self.weight += n

    @property
    def value(self):
        return self.total / self.weight if self.weight else 0.0


class Board:
    def __init__(self, *names):
        self.meters = {n: Average(n) for n in names}

    def __getitem__(self, name):
        return self.meters[name]

    def clear(self):
        for m in self.meters.values():
            m.reset()

    def line(self):
        return "  ".join(f"{n} {m.value:.4f}" for n, m in self.meters.items())
