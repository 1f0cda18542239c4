"""Lion (Chen et al. 2023) ported from a JAX code base."""
import torch
from torch.optim import Optimizer


class Lion(Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.mul_(1 - group["weight_decay"])
                state = self.state[p]
                if not state:
                    state["mu"] = torch.zeros_like(p)
                mu = state["mu"]
                update = mu.mul(b1).add(p.grad, alpha=1 - b1).sign_()
                p.add_(update, alpha=-group["lr"])
                mu.mul_(b2).add_(p.grad, alpha=1 - b2)
        return loss
