import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, d_in=64, d=48):
        super().__init__()
        self.inp = nn.Linear(d_in, d)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)) for _ in range(2)
        )

    def forward(self, x):
        h = self.inp(x)
        for b in self.blocks:
            h = h + b(h)
        return h


class MaskedAutoencoder(nn.Module):
    def __init__(self, encoder, ratio=0.4):
        super().__init__()
        self.encoder, self.ratio = encoder, ratio
        self.decoder = nn.Linear(48, 64)

    def forward(self, x):
        keep = (torch.rand_like(x) > self.ratio).float()
        recon = self.decoder(self.encoder(x * keep))
        return ((recon - x).square() * (1 - keep)).sum() / (1 - keep).sum()


class Classifier(nn.Module):
    def __init__(self, encoder, n_out=10):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(48, n_out)

    def forward(self, x):
        return self.head(self.encoder(x))
