import torch
from torch import nn

from .init import reset_linear, trainable


class CrossBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.nq, self.nk, self.nf = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, q, kv):
        kv = self.nk(kv)
        q = q + self.attn(self.nq(q), kv, kv, need_weights=False)[0]
        return q + self.ff(self.nf(q))


class PointPerceiver(nn.Module):
    def __init__(self, n_points, n_classes, dim=32, n_latents=4, depth=2, heads=4):
        super().__init__()
        self.embed = nn.Linear(2, dim)
        self.slot = trainable(1, n_points, dim)
        self.latents = trainable(1, n_latents, dim)
        self.blocks = nn.ModuleList(CrossBlock(dim, heads) for _ in range(depth))
        self.head = nn.Linear(dim, n_classes)
        self.apply(reset_linear)

    def forward(self, pts):
        kv = self.embed(pts) + self.slot
        q = self.latents.expand(len(pts), -1, -1)
        for block in self.blocks:
            q = block(q, kv)
        return self.head(q.mean(1))
