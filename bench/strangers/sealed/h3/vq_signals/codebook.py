import torch
from torch import nn
import torch.nn.functional as F


class Codebook(nn.Module):
    """Vector quantisation with moving-average codes."""

    def __init__(self, n_codes, dim, decay=0.95, commit=0.25):
        super().__init__()
        self.decay, self.commit = decay, commit
        codes = torch.randn(n_codes, dim)
        self.register_buffer("codes", codes)
        self.register_buffer("mass", torch.ones(n_codes))
        self.register_buffer("total", codes.clone())

    @torch.no_grad()
    def _move(self, flat, pick):
        onehot = F.one_hot(pick, len(self.codes)).to(flat.dtype)
        self.mass.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(onehot.T @ flat, alpha=1 - self.decay)
        self.codes.copy_(self.total / self.mass.clamp(min=1e-3).unsqueeze(1))
        tired = self.mass < 0.05
        if tired.any():
            fresh = flat[torch.randint(len(flat), (int(tired.sum()),), device=flat.device)]
            self.codes[tired] = fresh
            self.total[tired] = fresh
            self.mass[tired] = 1.0

    def forward(self, z):
        flat = z.reshape(-1, z.size(-1))
        pick = torch.cdist(flat.detach(), self.codes).argmin(1)
        q = self.codes[pick].view_as(z)
        commit = self.commit * F.mse_loss(z, q)
        if self.training:
            self._move(flat.detach(), pick)
        return z + (q - z).detach(), commit, pick.view(z.shape[:-1])
