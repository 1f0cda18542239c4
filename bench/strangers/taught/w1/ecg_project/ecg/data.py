import math

import torch
from torch.utils.data import DataLoader, TensorDataset


def synth(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=g)
    t = torch.linspace(0, 1, 128)
    freq = 4.0 + 3.0 * y.float()
    ph = torch.rand(n, generator=g) * 2 * math.pi
    s = torch.sin(2 * math.pi * freq[:, None] * t + ph[:, None])
    x = torch.stack([s, s.roll(5, 1)], 1) + 0.4 * torch.randn(n, 2, 128, generator=g)
    return x, y


def loaders(bs):
    return (DataLoader(TensorDataset(*synth(1200, 0)), bs, shuffle=True),
            DataLoader(TensorDataset(*synth(300, 1)), 300))
