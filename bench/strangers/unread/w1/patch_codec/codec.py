"""Learned patch codec: analysis transform, scalar quantiser, synthesis transform."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


@dataclass
class Args:
    latent: int = 12
    step: float = 0.05
    width: int = 96
    iterations: int = 400
    batch: int = 128
    lr: float = 2e-3
    seed: int = 3


class Quantiser(nn.Module):
    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, latent):
        symbols = torch.round(latent / self.step)
        return symbols * self.step, symbols


class Codec(nn.Module):
    def __init__(self, a: Args):
        super().__init__()
        self.analysis = nn.Sequential(
            nn.Linear(64, a.width), nn.GELU(), nn.Linear(a.width, a.width), nn.GELU(),
            nn.Linear(a.width, a.latent),
        )
        self.quantiser = Quantiser(a.step)
        self.synthesis = nn.Sequential(
            nn.Linear(a.latent, a.width), nn.GELU(), nn.Linear(a.width, a.width), nn.GELU(),
            nn.Linear(a.width, 64),
        )

    def forward(self, x):
        latent = self.analysis(x)
        decoded, symbols = self.quantiser(latent)
        return self.synthesis(decoded), symbols


def bits_per_symbol(symbols):
    _, counts = symbols.flatten().unique(return_counts=True)
    p = counts.float() / counts.sum()
    return -(p * p.log2()).sum().item()


def psnr(mse):
    return -10 * torch.log10(torch.tensor(mse)).item()


def evaluate(codec, x):
    codec.eval()
    with torch.no_grad():
        rec, symbols = codec(x)
        mse = F.mse_loss(rec, x).item()
    codec.train()
    return psnr(mse), bits_per_symbol(symbols)


def main():
    a = Args()
    torch.manual_seed(a.seed)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    images = images[torch.randperm(len(images))]
    train, held = images[:1400], images[1400:]

    codec = Codec(a)
    opt = torch.optim.Adam(codec.parameters(), lr=a.lr)
    for it in range(a.iterations):
        x = train[torch.randint(len(train), (a.batch,))]
        rec, _ = codec(x)
        distortion = F.mse_loss(rec, x)
        opt.zero_grad()
        distortion.backward()
        opt.step()
        if (it + 1) % 100 == 0:
            db, bits = evaluate(codec, held)
            print(f"it {it + 1}: train mse {distortion.item():.4f} held-out {db:.2f} dB, {bits:.2f} bit/symbol")


if __name__ == "__main__":
    main()
