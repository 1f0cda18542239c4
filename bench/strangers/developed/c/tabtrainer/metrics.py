class Average:
    """Running weighted mean. Works with floats and with 0-d tensors (no host sync until .value is read)."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total = self.total + value * n
        self.count += n

    @property
    def value(self):
        return float(self.total) / max(self.count, 1)


class MetricBook(dict):
    def __missing__(self, key):
        self[key] = Average()
        return self[key]

    def line(self):
        return " | ".join(f"{k} {m.value:.4f}" for k, m in self.items())
