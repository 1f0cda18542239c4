"""Synthetic 'words': frequency glides, so the pipeline can be smoke-tested without the recordings."""
import math

import torch

WORDS = ["up", "down", "dip", "peak"]


def utterance(k, g):
    n = 4000
    t = torch.linspace(0, 1, n)
    shape = [t, 1 - t, (2 * t - 1).abs(), 1 - (2 * t - 1).abs()][k]
    f = 600 + 200 * torch.rand(1, generator=g) + 1800 * shape
    gain = 10 ** (-3 * torch.rand(1, generator=g))
    wave = torch.sin(2 * math.pi * torch.cumsum(f, 0) / 8000) + 0.8 * torch.randn(n, generator=g)
    # every microphone has its own colour
    spec = torch.fft.rfft(wave)
    tilt = 6 * (torch.rand(1, generator=g) - 0.5) * torch.linspace(-1, 1, len(spec))
    return gain * torch.fft.irfft(spec * tilt.exp(), n=n)


def make(n, seed):
    g = torch.Generator().manual_seed(seed)
    labels = torch.randint(len(WORDS), (n,), generator=g)
    return [utterance(int(k), g) for k in labels], labels
