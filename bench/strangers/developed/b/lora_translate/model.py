import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.att = Attention(d, heads)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.mlp(self.n2(x))


class DecoderLM(nn.Module):
    def __init__(self, vocab, d=48, heads=4, layers=2, ctx=24):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(ctx, d)
        self.blocks = nn.Sequential(*(Block(d, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(d)

    def forward(self, ids):
        h = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        return self.norm(self.blocks(h)) @ self.tok.weight.T  # tied output


class LoRA(nn.Module):
    """Wraps a frozen linear layer; B starts at zero so that the wrapped layer is unchanged at first."""

    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.a.T @ self.b.T)


def add_lora(net, rank=8, alpha=16):
    net.requires_grad_(False)
    for blk in net.blocks:
        blk.att.qkv = LoRA(blk.att.qkv, rank, alpha)
        blk.att.out = LoRA(blk.att.out, rank, alpha)
        blk.mlp[0] = LoRA(blk.mlp[0], rank, alpha)
        blk.mlp[2] = LoRA(blk.mlp[2], rank, alpha)
    return net
