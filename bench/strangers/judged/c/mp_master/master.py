import torch


class MasterWeights:
    """Keeps float32 copies of a half precision model, Apex-O2 style, with a dynamic loss scale."""

    def __init__(self, model, opt_cls, init_scale=2.0 ** 12, growth_interval=50, **opt_kw):
        self.half = [p for p in model.parameters() if p.requires_grad]
        self.full = [p.detach().clone().float().requires_grad_() for p in self.half]
        self.opt = opt_cls(self.full, **opt_kw)
        self.scale, self.good, self.interval = init_scale, 0, growth_interval
        self.skipped = 0

    def backward(self, loss):
        (loss * self.scale).backward()

    def step(self, max_norm=None):
        for h, f in zip(self.half, self.full):
            f.grad = None if h.grad is None else h.grad.float() / self.scale
            h.grad = None
        grads = [f.grad for f in self.full if f.grad is not None]
        if not all(torch.isfinite(g).all() for g in grads):
            self.scale, self.good = self.scale / 2, 0
            self.skipped += 1
            return False
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.full, max_norm)
        self.opt.step()
        with torch.no_grad():
            for h, f in zip(self.half, self.full):
                h.copy_(f)
        self.good += 1
        if self.good % self.interval == 0:
            self.scale *= 2
        return True
