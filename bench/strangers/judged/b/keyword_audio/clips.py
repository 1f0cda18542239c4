import math

import torch
from torch.utils.data import Dataset

RATE, LENGTH = 4000, 2000
WORDS = {"up": (300, 900), "down": (900, 300), "left": (500, 500), "right": (1200, 1500)}


def synth(word, gen):
    lo, hi = WORDS[word]
    t = torch.arange(LENGTH) / RATE
    f = lo + (hi - lo) * torch.linspace(0, 1, LENGTH)
    f = f * (0.9 + 0.2 * torch.rand(1, generator=gen))
    phase = 2 * math.pi * torch.cumsum(f, 0) / RATE
    gain = 0.004 + 0.016 * torch.rand(1, generator=gen)
    return gain * torch.sin(phase) * torch.exp(-2 * t) + 0.003 * torch.randn(LENGTH, generator=gen)


class Clips(Dataset):
    def __init__(self, n, seed, frontend, norm=None):
        gen = torch.Generator().manual_seed(seed)
        self.words = sorted(WORDS)
        self.y = torch.randint(0, len(self.words), (n,), generator=gen)
        self.waves = torch.stack([synth(self.words[k], gen) for k in self.y])
        self.frontend, self.norm = frontend, norm

    def all_features(self):
        return self.frontend(self.waves)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        f = self.frontend(self.waves[i])
        return (self.norm(f) if self.norm else f), self.y[i]
