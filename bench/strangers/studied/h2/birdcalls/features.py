from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class FeatureConfig:
    sample_rate: int = 4000
    seconds: float = 0.8
    n_fft: int = 128
    hop: int = 50

    @property
    def n_samples(self):
        return int(self.sample_rate * self.seconds)

    @property
    def n_bins(self):
        return self.n_fft // 2 + 1

    @property
    def n_frames(self):
        return self.n_samples // self.hop


class LogSpec:
    def __init__(self, cfg):
        self.cfg = cfg
        self.window = torch.hann_window(cfg.n_fft)

    def __call__(self, wave):
        spec = torch.stft(wave, self.cfg.n_fft, self.cfg.hop, window=self.window, return_complex=True)
        return torch.log1p(spec.abs())
