from collections import defaultdict


class MetricTracker:
    def __init__(self):
        self.reset()

    def reset(self):
        self._sum = defaultdict(float)
        self._cnt = defaultdict(int)

    def update(self, n, **values):
        for key, value in values.items():
            self._sum[key] += value * n
            self._cnt[key] += n

    def compute(self):
        return {k: float(self._sum[k] / self._cnt[k]) for k in self._sum}
