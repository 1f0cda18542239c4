import torch


class SAM:
    """Sharpness-aware minimisation around any base optimizer."""

    def __init__(self, base, rho=0.05):
        self.base, self.rho = base, rho
        self.offsets = {}

    def _params(self):
        return [p for g in self.base.param_groups for p in g["params"] if p.grad is not None]

    @torch.no_grad()
    def climb(self):
        params = self._params()
        norm = torch.stack([p.grad.norm() for p in params]).norm()
        for p in params:
            e = p.grad * (self.rho / (norm + 1e-12))
            p.add_(e)
            self.offsets[p] = e
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, e in self.offsets.items():
            p.sub_(e)
        self.offsets.clear()
        self.base.step()
        self.base.zero_grad()
