"""Learning-rate warmup for the transformer experiments."""


class WarmupOptim:
    """Wraps an optimizer and drives its learning rate with the inverse-sqrt schedule.

    rate(step) = factor * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5)
    """

    def __init__(self, inner, d_model, warmup=60, factor=1.0):
        self.inner = inner
        self.d_model = d_model
        self.warmup = warmup
        self.factor = factor
        self.n_steps = 0
        self.last_rate = 0.0

    def rate(self, step):
        return self.factor * self.d_model ** -0.5 * min(step ** -0.5, step * self.warmup ** -1.5)

    def zero_grad(self):
        self.inner.zero_grad(set_to_none=True)

    def step(self):
        self.n_steps += 1
        self.last_rate = self.rate(self.n_steps)
        for group in self.inner.param_groups:
            group["lr"] = self.last_rate

    def state_dict(self):
        return {"inner": self.inner.state_dict(), "n_steps": self.n_steps}

    def load_state_dict(self, state):
        self.inner.load_state_dict(state["inner"])
        self.n_steps = state["n_steps"]
