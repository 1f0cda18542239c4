import torch
from torch import nn


class ResidualMLP(nn.Module):
    def __init__(self, d_in, d_out, width, blocks, dropout):
        super().__init__()
        self.inp = nn.Linear(d_in, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.ReLU(), nn.Dropout(dropout),
                          nn.Linear(2 * width, width))
            for _ in range(blocks)
        )
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, d_out))

    def forward(self, x):
        h = self.inp(x)
        for b in self.blocks:
            h = h + b(h)
        return self.out(h)


def build(cfg, d_in, d_out, device):
    net = ResidualMLP(d_in, d_out, **cfg["model"])
    return net.to(device=device, dtype=getattr(torch, cfg["dtype"]))
