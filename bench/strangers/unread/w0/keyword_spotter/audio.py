import math

import torch
from torch.utils.data import Dataset

KEYWORDS = ["yes", "no", "stop", "go"]


class SyntheticKeywords(Dataset):
    """Every keyword is a chirp with its own start and end frequency."""

    def __init__(self, n, seed, sr=2000, seconds=0.4):
        gen = torch.Generator().manual_seed(seed)
        t = torch.arange(int(sr * seconds)) / sr
        self.items = []
        for _ in range(n):
            k = int(torch.randint(len(KEYWORDS), (1,), generator=gen))
            f0, f1 = 120 + 90 * k, 500 - 60 * k
            phase = float(torch.rand(1, generator=gen)) * 2 * math.pi
            wave = torch.sin(2 * math.pi * (f0 * t + (f1 - f0) * t**2 / (2 * seconds)) + phase)
            wave = wave + 0.2 * torch.randn(t.numel(), generator=gen)
            self.items.append((wave, k))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def log_spectrogram(wave, n_fft=64, hop=16):
    spec = torch.stft(wave, n_fft, hop, window=torch.hann_window(n_fft, device=wave.device), return_complex=True)
    return torch.log1p(spec.abs())  # (batch, freq, frames)
