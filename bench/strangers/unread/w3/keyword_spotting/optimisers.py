import torch


class Lookahead:
    """k steps forward, 1 step back (Zhang et al., 2019)."""

    def __init__(self, base: torch.optim.Optimizer, k: int = 5, alpha: float = 0.5):
        self.base, self.k, self.alpha = base, k, alpha
        self.counter = 0
        self.slow = [[p.detach().clone() for p in g["params"]] for g in base.param_groups]

    @property
    def param_groups(self):
        return self.base.param_groups

    def zero_grad(self):
        for group in self.base.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.detach_()

    @torch.no_grad()
    def step(self):
        self.base.step()
        self.counter += 1
        if self.counter % self.k:
            return
        for group, slow in zip(self.base.param_groups, self.slow):
            for p, s in zip(group["params"], slow):
                s.lerp_(p, self.alpha)
                p.copy_(s)
