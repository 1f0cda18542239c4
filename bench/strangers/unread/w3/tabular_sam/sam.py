import torch


class SAM(torch.optim.Optimizer):
    """Sharpness-aware minimisation around a base optimizer (Foret et al. 2021)."""

    def __init__(self, params, base, rho=0.05, **kw):
        super().__init__(params, dict(rho=rho, **kw))
        self.base = base(self.param_groups, **kw)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        grads = [p.grad for g in self.param_groups for p in g["params"] if p.grad is not None]
        norm = torch.stack([g.norm() for g in grads]).norm()
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is not None:
                    self.state[p]["home"] = p.clone()
                    p.add_(p.grad * scale)
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        if closure is None:
            raise ValueError("SAM needs a closure that recomputes the loss and its gradients")
        closure = torch.enable_grad()(closure)
        self.zero_grad()
        loss = closure()
        self.climb()
        closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.copy_(self.state[p].pop("home"))
        self.base.step()
        return loss
