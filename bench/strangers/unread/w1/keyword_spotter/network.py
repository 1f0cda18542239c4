import math

import torch
from torch import nn


class LogMel(nn.Module):
    """Cheap filterbank: STFT power, triangular pooling, log compression."""

    def __init__(self, n_fft=128, hop=64, n_bands=20):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))
        bins = n_fft // 2 + 1
        centres = torch.linspace(1, bins - 2, n_bands).unsqueeze(1)
        freqs = torch.arange(bins).unsqueeze(0)
        self.register_buffer("bank", (1 - (freqs - centres).abs() / 3.0).clamp(min=0))

    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        return torch.log(self.bank @ spec.abs().pow(2) + 1e-5)


class Spotter(nn.Module):
    def __init__(self, n_keywords, width=32):
        super().__init__()
        self.frontend = LogMel()
        self.norm = nn.BatchNorm1d(20)
        self.body = nn.Sequential(
            nn.Conv1d(20, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(),
        )
        self.scorer = nn.Linear(width, n_keywords)
        self.smoothing = 3

    def scores(self, wave):
        frames = self.body(self.norm(self.frontend(wave)))
        return self.scorer(frames.transpose(1, 2))

    def forward(self, wave):
        """Utterance level output: frame posteriors averaged over time."""
        frames = self.scores(wave)
        posterior = frames.softmax(dim=-1)
        return posterior.mean(dim=1)


def synth(n, n_keywords, generator, rate=2000):
    t = torch.arange(rate // 2) / rate
    label = torch.randint(n_keywords, (n,), generator=generator)
    base = 120.0 + 90.0 * label.float()
    jitter = 10 * torch.randn(n, generator=generator)
    phase = 2 * math.pi * torch.rand(n, 1, generator=generator)
    wave = torch.sin(2 * math.pi * (base + jitter).unsqueeze(1) * t + phase)
    return wave + 0.5 * torch.randn(wave.shape, generator=generator), label
