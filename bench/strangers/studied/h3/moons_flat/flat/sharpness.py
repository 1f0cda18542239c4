import torch


class SharpnessAware(torch.optim.Optimizer):
    """Climb to the worst point of a small ball, then take the base optimizer's step."""

    def __init__(self, params, base_cls, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base_cls(self.param_groups, **kwargs)

    def _each(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    yield group, p

    def _ascend(self):
        norm = torch.stack([p.grad.norm() for _, p in self._each()]).norm()
        for group, p in self._each():
            e = p.grad * (group["rho"] / (norm + 1e-12))
            p.add_(e)
            self.state[p]["e"] = e

    def _descend(self):
        for _, p in self._each():
            p.sub_(self.state[p].pop("e"))
        self.base.step()

    @torch.no_grad()
    def step(self, closure):
        loss = closure()
        self._ascend()
        closure()
        self._descend()
        return loss
