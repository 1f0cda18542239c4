import torch
from torch import nn


class StraightThrough(torch.autograd.Function):
    """Forward: the code vector. Backward: the gradient goes unchanged to the encoder output, none to the code."""

    @staticmethod
    def forward(ctx, z, code):
        return code.clone()

    @staticmethod
    def backward(ctx, g):
        return g, None


class EmaQuantizer(nn.Module):
    """The codebook is a buffer: it follows the encoder by moving averages, not by gradients."""

    def __init__(self, n_codes, dim, decay=0.95, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        self.register_buffer("codes", torch.randn(n_codes, dim))
        self.register_buffer("count", torch.ones(n_codes))
        self.register_buffer("total", self.codes.clone())

    @torch.no_grad()
    def _follow(self, z, idx):
        hot = nn.functional.one_hot(idx, len(self.codes)).to(z.dtype)
        self.count.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(hot.T @ z, alpha=1 - self.decay)
        n = self.count.sum()
        size = (self.count + self.eps) / (n + len(self.codes) * self.eps) * n
        self.codes.copy_(self.total / size[:, None])
        dead = self.count < 0.05
        if dead.any():
            pick = torch.randint(0, len(z), (int(dead.sum()),))
            self.codes[dead] = z[pick]
            self.total[dead] = z[pick]
            self.count[dead] = 1.0

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        idx = torch.cdist(flat.detach(), self.codes).argmin(1)
        code = self.codes[idx]
        if self.training:
            self._follow(flat.detach(), idx)
        commit = (flat - code).square().mean()
        return StraightThrough.apply(flat, code).view_as(z), commit, idx
