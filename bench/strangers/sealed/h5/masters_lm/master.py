import torch


class MasterSGD:
    """Keeps float32 copies of 16 bit parameters and updates those; the model gets rounded copies."""

    def __init__(self, params, lr, momentum=0.9):
        self.low = [p for p in params if p.requires_grad]
        self.high = [p.detach().float().clone() for p in self.low]
        self.inner = torch.optim.SGD(self.high, lr=lr, momentum=momentum)

    def zero_grad(self):
        for p in self.low:
            p.grad = None

    @torch.no_grad()
    def step(self):
        for hi, lo in zip(self.high, self.low):
            hi.grad = lo.grad.float() if lo.grad is not None else None
        self.inner.step()
        for hi, lo in zip(self.high, self.low):
            lo.copy_(hi)

    def state_dict(self):
        return {"high": self.high, "inner": self.inner.state_dict()}
