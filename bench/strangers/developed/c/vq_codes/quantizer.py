import torch
import torch.nn.functional as F
from torch import nn


class EMAQuantizer(nn.Module):
    """Codebook learnt with moving averages (buffers, no gradient); straight-through to the encoder."""

    def __init__(self, codes, dim, decay=0.95, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        book = torch.randn(codes, dim)
        self.register_buffer("book", book)
        self.register_buffer("count", torch.ones(codes))
        self.register_buffer("total", book.clone())

    @torch.no_grad()
    def _move(self, flat, idx):
        hot = F.one_hot(idx, len(self.book)).to(flat.dtype)
        self.count.lerp_(hot.sum(0), 1 - self.decay)
        self.total.lerp_(hot.t() @ flat, 1 - self.decay)
        n = self.count.sum()
        smooth = (self.count + self.eps) / (n + len(self.book) * self.eps) * n
        self.book.copy_(self.total / smooth.unsqueeze(1))
        dead = self.count < 0.05
        if dead.any():
            fresh = flat[torch.randint(len(flat), (int(dead.sum()),))]
            self.book[dead], self.total[dead], self.count[dead] = fresh, fresh, 1.0

    def forward(self, z):
        flat = z.reshape(-1, z.size(-1))
        idx = torch.cdist(flat.detach(), self.book).argmin(1)
        q = self.book[idx].view_as(z)
        commit = F.mse_loss(z, q)
        if self.training:
            self._move(flat.detach(), idx)
        return z + (q - z).detach(), commit, idx.view(z.shape[:-1])
