import torch

from base import BaseTrainer


class LookaheadTrainer(BaseTrainer):
    """Every k steps the slow weights move a part of the way to the fast ones (Zhang et al. 2019)."""

    def __init__(self, model, optimizer, k=5, alpha=0.5, **kw):
        super().__init__(model, optimizer, **kw)
        self.k, self.alpha = k, alpha
        self.slow = [p.detach().clone() for p in self.model.parameters()]

    def optimizer_step(self):
        self.optimizer.step()
        if (self.global_step + 1) % self.k == 0:
            with torch.no_grad():
                for s, p in zip(self.slow, self.model.parameters()):
                    s.lerp_(p, self.alpha)
                    p.copy_(s)
