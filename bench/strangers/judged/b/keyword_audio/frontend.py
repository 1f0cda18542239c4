"""Spectral front end shared by training and by the streaming evaluator."""
import torch


def band_energies(wave, n_fft=128, hop=64, bands=24, compress=False, floor=1e-6):
    """(T,) or (B, T) waveform -> (..., bands, frames) energies, optionally log-compressed."""
    window = torch.hann_window(n_fft)
    spec = torch.stft(wave, n_fft, hop, window=window, return_complex=True).abs().pow(2)
    edges = torch.linspace(0, spec.shape[-2], bands + 1).long()
    e = torch.stack([spec[..., a:b, :].mean(-2) for a, b in zip(edges[:-1], edges[1:])], dim=-2)
    return torch.log(e + floor) if compress else e


class Normalizer:
    """Mean/variance per band, estimated on the training clips."""

    def __init__(self, feats):
        self.mean = feats.mean((0, 2), keepdim=True)[0]
        self.std = feats.std((0, 2), keepdim=True)[0].clamp_min(1e-4)

    def __call__(self, feat):
        return (feat - self.mean) / self.std
