import numpy as np
import torch


class SNRStep(torch.optim.Optimizer):
    """Momentum SGD whose rate is scaled by the recent signal-to-noise ratio of the gradient."""

    def __init__(self, params, lr=0.05, momentum=0.9, window=8):
        super().__init__(params, dict(lr=lr, momentum=momentum))
        self.window = window
        self.trail = []
        self.scale = 1.0

    def _flat_gradient(self):
        parts = [p.grad.reshape(-1) for g in self.param_groups for p in g["params"] if p.grad is not None]
        return torch.cat(parts).cpu().numpy()

    def _measure(self):
        self.trail.append(self._flat_gradient())
        if len(self.trail) < self.window:
            return
        recent = np.stack(self.trail[-self.window:])
        mean, std = recent.mean(0), recent.std(0)
        ratio = np.linalg.norm(mean) / (np.linalg.norm(std) + 1e-12)
        self.scale = float(np.clip(2.0 * ratio, 0.2, 1.0))

    @torch.no_grad()
    def step(self, closure=None):
        self._measure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = self.state[p].setdefault("velocity", torch.zeros_like(p))
                buf.mul_(group["momentum"]).add_(p.grad)
                p.add_(buf, alpha=-group["lr"] * self.scale)
