import math


class WarmupCosine:
    """Sets the rate of every group from the number of optimizer steps taken so far."""

    def __init__(self, optimizer, peak, warmup, total):
        self.optimizer = optimizer
        self.peak = peak
        self.warmup = warmup
        self.total = total
        self.t = 0
        self._apply()

    def rate(self):
        if self.t < self.warmup:
            return self.peak * (self.t + 1) / self.warmup
        done = (self.t - self.warmup) / max(1, self.total - self.warmup)
        return 0.5 * self.peak * (1 + math.cos(math.pi * min(1.0, done)))

    def _apply(self):
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()

    def step(self):
        self.t += 1
        self._apply()

    def state_dict(self):
        return {"t": self.t}

    def load_state_dict(self, state):
        self.t = state["t"]
        self._apply()
