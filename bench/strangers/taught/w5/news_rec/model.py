import torch
import torch.nn as nn


class HistoryAttention(nn.Module):
    """Target-aware pooling of the click history (DIN style, softmax version)."""

    def __init__(self, dim):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.scale = dim ** -0.5

    def forward(self, candidate, history, is_pad):
        score = torch.einsum("bd,bld->bl", self.q(candidate), self.k(history)) * self.scale
        score = score.masked_fill(is_pad, float("-inf"))
        weight = torch.softmax(score, dim=1)
        return torch.einsum("bl,bld->bd", weight, history)


class ClickModel(nn.Module):
    def __init__(self, n_items, n_segments, dim=32):
        super().__init__()
        self.items = nn.Embedding(n_items + 1, dim, padding_idx=0)
        self.segment = nn.Embedding(n_segments, dim)
        self.pool = HistoryAttention(dim)
        self.mlp = nn.Sequential(nn.Linear(4 * dim, 64), nn.PReLU(), nn.Linear(64, 1))

    def forward(self, segment, item, hist):
        c = self.items(item)
        h = self.pool(c, self.items(hist), hist.eq(0))
        z = torch.cat([self.segment(segment), c, h, c * h], dim=1)
        return self.mlp(z).squeeze(1)
