import math

import torch
from torch import nn

_BIAS_CACHE = {}


def recency_bias(length, heads):
    """ALiBi-like slopes plus the causal part, built once per sequence length."""
    key = (length, heads)
    if key not in _BIAS_CACHE:
        pos = torch.arange(length)
        dist = (pos[:, None] - pos[None, :]).float()
        slopes = torch.tensor([2.0 ** -(h + 1) for h in range(heads)])
        bias = -slopes[:, None, None] * dist.clamp(min=0)
        _BIAS_CACHE[key] = bias.masked_fill(dist < 0, float("-inf"))
    return _BIAS_CACHE[key]


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.dh = heads, dim // heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).reshape(b, t, 3, self.heads, self.dh).permute(2, 0, 3, 1, 4)
        att = q @ k.transpose(-1, -2) / math.sqrt(self.dh)
        att = (att + recency_bias(t, self.heads)).softmax(-1)
        return self.proj((att @ v).transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.att = SelfAttention(dim, heads)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.ff(self.n2(x))


class NextItem(nn.Module):
    def __init__(self, n_items, dim=32, heads=4, depth=2):
        super().__init__()
        self.items = nn.Embedding(n_items, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)

    def forward(self, seq):
        h = self.norm(self.blocks(self.items(seq)))
        return h @ self.items.weight.T
