import math

import torch
from torch import nn


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        freqs = torch.exp(-math.log(1000.0) * torch.arange(dim // 2) / (dim // 2))
        self.register_buffer("freqs", freqs)

    def forward(self, t):
        ang = t.float().unsqueeze(-1) * self.freqs
        return torch.cat([ang.sin(), ang.cos()], dim=-1)


class Denoiser(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.temb = TimeEmbedding(dim)
        self.inp = nn.Linear(2, dim)
        self.mid = nn.ModuleList(nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU()) for _ in range(3))
        self.out = nn.Linear(dim, 2)

    def forward(self, x, t):
        h, e = self.inp(x), self.temb(t)
        for layer in self.mid:
            h = h + layer(torch.cat([h, e], dim=-1))
        return self.out(h)
