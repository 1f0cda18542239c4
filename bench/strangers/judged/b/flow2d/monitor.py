class Smooth:
    """Exponentially smoothed, bias-corrected scalar (as in Adam)."""

    def __init__(self, beta=0.98):
        self.beta, self.value, self.k = beta, 0.0, 0

    def push(self, v):
        self.value = self.beta * self.value + (1 - self.beta) * v
        self.k += 1

    def read(self):
        return float(self.value / (1 - self.beta ** max(1, self.k)))


class Dashboard:
    def __init__(self, every=100):
        self.curves, self.every, self.step = {}, every, 0

    def __call__(self, **scalars):
        self.step += 1
        for name, v in scalars.items():
            self.curves.setdefault(name, Smooth()).push(v)
        if self.step % self.every == 0:
            print(f"step {self.step:5d}  " + "  ".join(f"{k} {c.read():.4f}" for k, c in self.curves.items()))
