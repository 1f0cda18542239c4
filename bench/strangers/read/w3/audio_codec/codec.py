import math

import torch
from torch import nn


class UniformQuantizer(nn.Module):
    """Maps each latent to one of `levels` values in [-1, 1]."""

    def __init__(self, levels: int):
        super().__init__()
        self.half = (levels - 1) / 2

    def forward(self, z):
        z = torch.tanh(z)
        q = torch.round(z * self.half) / self.half
        return z + (q - z)


class Codec(nn.Module):
    def __init__(self, dim=24, latent=8, levels=9):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, dim, 8, stride=4, padding=2), nn.ELU(), nn.Conv1d(dim, latent, 8, stride=4, padding=2)
        )
        self.quantizer = UniformQuantizer(levels)
        self.decoder = nn.Sequential(
            nn.ConvTranspose1d(latent, dim, 8, stride=4, padding=2), nn.ELU(),
            nn.ConvTranspose1d(dim, 1, 8, stride=4, padding=2),
        )

    def forward(self, wav):
        return self.decoder(self.quantizer(self.encoder(wav)))


def tones(n, length=256, seed=0):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(length) / length
    f = torch.rand(n, 3, 1, generator=g) * 14 + 1
    phase = torch.rand(n, 3, 1, generator=g) * 2 * math.pi
    amp = torch.rand(n, 3, 1, generator=g)
    return (amp * torch.sin(2 * math.pi * f * t + phase)).sum(1, keepdim=True) / 2


def spectral(a, b, n_fft=64):
    w = torch.hann_window(n_fft, device=a.device)
    sa, sb = (torch.stft(s.squeeze(1), n_fft, 16, window=w, return_complex=True) for s in (a, b))
    return (torch.log1p(sa.abs() + 1e-5) - torch.log1p(sb.abs() + 1e-5)).abs().mean()


def main():
    torch.manual_seed(0)
    train, test = tones(512, seed=1), tones(64, seed=2)
    codec = Codec()
    opt = torch.optim.AdamW(codec.parameters(), lr=3e-3, betas=(0.8, 0.99), weight_decay=0.0)
    for epoch in range(8):
        codec.train()
        for idx in torch.randperm(len(train)).split(32):
            wav = train[idx]
            rec = codec(wav)
            loss = nn.functional.mse_loss(rec, wav) + 0.1 * spectral(rec, wav)
            opt.zero_grad()
            loss.backward()
            opt.step()
        codec.eval()
        with torch.no_grad():
            err = nn.functional.mse_loss(codec(test), test)
            snr = 10 * torch.log10(test.pow(2).mean() / err)
        print(f"{epoch} loss {loss.item():.4f} snr {snr.item():.2f} dB")


if __name__ == "__main__":
    main()
