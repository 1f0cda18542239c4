import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        ms = (x * x).mean(dim=-1, keepdim=True)
        return x * torch.rsqrt(ms + self.eps) * self.gain


class EtaNet(nn.Module):
    def __init__(self, d_in, width=64):
        super().__init__()
        self.inp = nn.Linear(d_in, width)
        self.norm1 = RMSNorm(width)
        self.mid = nn.Linear(width, width)
        self.norm2 = RMSNorm(width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.relu(self.norm1(self.inp(x)))
        h = torch.relu(self.norm2(self.mid(h)))
        return self.out(h).squeeze(-1)
