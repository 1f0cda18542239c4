import math

import torch

RATE = 2000
NOTES = [110.0, 146.8, 196.0, 246.9, 329.6]


def synth(n, seed, length=400):
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, len(NOTES), (n,), generator=g)
    freq = torch.tensor(NOTES)[label] * (1 + 0.01 * torch.randn(n, generator=g))
    t = torch.arange(length) / RATE
    phase = 2 * math.pi * torch.rand(n, 1, generator=g)
    wave = torch.sin(2 * math.pi * freq[:, None] * t + phase)
    wave = wave + 0.4 * torch.sin(4 * math.pi * freq[:, None] * t) + 0.5 * torch.randn(n, length, generator=g)
    return wave[:, None, :], label
