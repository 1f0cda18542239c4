"""Learning-rate wrapper in the manner of "Attention is all you need"."""


class NoamOpt:
    def __init__(self, optimizer, model_size, factor=1.0, warmup=400):
        self.optimizer = optimizer
        self.model_size = model_size
        self.factor = factor
        self.warmup = warmup
        self._step = 0
        self._rate = 0.0

    def rate(self, step=None):
        step = step or self._step
        return self.factor * self.model_size ** -0.5 * min(step ** -0.5, step * self.warmup ** -1.5)

    def _set_rate(self, value):
        for group in self.optimizer.param_groups:
            group["lr"] = value
        self._rate = value

    def step(self):
        """Advance by one update."""
        self._step += 1
        self._set_rate(self.rate())

    def zero_grad(self):
        self.optimizer.zero_grad(set_to_none=True)

    def state_dict(self):
        return {"inner": self.optimizer.state_dict(), "step": self._step, "rate": self._rate}

    def load_state_dict(self, state):
        self.optimizer.load_state_dict(state["inner"])
        self._step, self._rate = state["step"], state["rate"]
