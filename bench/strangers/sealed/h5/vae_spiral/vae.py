import torch
from torch import nn


class VAE(nn.Module):
    def __init__(self, d=2, latent=2, width=48, drop=0.1):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, width), nn.SiLU(), nn.Dropout(drop), nn.Linear(width, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, d))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=-1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        kl = 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).sum(-1)
        rec = ((self.dec(z) - x) ** 2).sum(-1) / 0.1
        return (rec + kl).mean(), rec.mean()
