import torch
import torch.nn as nn
import torch.nn.functional as F


class RoundThrough(torch.autograd.Function):
    """rounds in the forward pass, identity inside [lo, hi] for the gradient"""

    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.save_for_backward((x >= lo) & (x <= hi))
        return x.clamp(lo, hi).round()

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        return grad * inside, None, None


class VectorQuantizer(nn.Module):
    """codebook is updated by moving averages, so it is a buffer and gets no gradient"""

    def __init__(self, n_codes, dim, decay=0.95, beta=0.25):
        super().__init__()
        self.decay, self.beta = decay, beta
        book = torch.randn(n_codes, dim)
        self.register_buffer("codebook", book)
        self.register_buffer("counts", torch.ones(n_codes))
        self.register_buffer("sums", book.clone())

    def forward(self, z):
        idx = torch.cdist(z.detach(), self.codebook).argmin(dim=1)
        zq = self.codebook[idx]
        if self.training:
            with torch.no_grad():
                hot = F.one_hot(idx, len(self.codebook)).float()
                self.counts.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
                self.sums.mul_(self.decay).add_(hot.t() @ z, alpha=1 - self.decay)
                self.codebook.copy_(self.sums / self.counts.clamp(min=1e-3).unsqueeze(1))
        commit = self.beta * F.mse_loss(z, zq)
        return z + (zq - z).detach(), commit, idx
