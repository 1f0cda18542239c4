import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class LogMelFrontend(nn.Module):
    """Log-mel features computed on the fly; keeps preprocessing inside the exported graph."""

    def __init__(self, n_fft=1024, hop=256, n_mels=40, sr=16000):
        super().__init__()
        self.hop = hop
        t = torch.arange(n_fft)
        k = torch.arange(n_fft // 2 + 1).unsqueeze(1)
        win = torch.hann_window(n_fft)
        ang = 2 * math.pi * k * t / n_fft
        self.register_buffer("cos", (win * ang.cos()).unsqueeze(1))
        self.register_buffer("sin", (win * ang.sin()).unsqueeze(1))
        self.register_buffer("mel", self._mel(n_fft, n_mels, sr))

    @staticmethod
    def _mel(n_fft, n_mels, sr):
        def hz2mel(f):
            return 2595 * math.log10(1 + f / 700)
        m = torch.linspace(hz2mel(40), hz2mel(sr / 2), n_mels + 2)
        f = 700 * (10 ** (m / 2595) - 1)
        bins = torch.linspace(0, sr / 2, n_fft // 2 + 1)
        up = (bins[None] - f[:-2, None]) / (f[1:-1, None] - f[:-2, None])
        down = (f[2:, None] - bins[None]) / (f[2:, None] - f[1:-1, None])
        return torch.minimum(up, down).clamp(min=0)

    def forward(self, wav):
        x = wav.unsqueeze(1)
        re = F.conv1d(x, self.cos, stride=self.hop)
        im = F.conv1d(x, self.sin, stride=self.hop)
        power = re * re + im * im
        mel = self.mel @ power
        logmel = torch.log(mel.float() + 1e-6)
        return (logmel - logmel.mean(dim=(1, 2), keepdim=True)) / (logmel.std(dim=(1, 2), keepdim=True) + 1e-5)
