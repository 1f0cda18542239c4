import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvVAE(nn.Module):
    """8x8 -> 4x4 -> 2x2 -> z and back."""

    def __init__(self, latent_dim=8, width=16):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.LeakyReLU(0.1),
            nn.Flatten(),
        )
        flat = 2 * width * 2 * 2
        self.to_mu = nn.Linear(flat, latent_dim)
        self.to_logvar = nn.Linear(flat, latent_dim)
        self.from_z = nn.Linear(latent_dim, flat)
        self.dec = nn.Sequential(
            nn.Unflatten(1, (2 * width, 2, 2)),
            nn.LeakyReLU(0.1),
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.LeakyReLU(0.1),
            nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1),
        )

    def encode(self, x):
        h = self.enc(x)
        return self.to_mu(h), self.to_logvar(h).clamp(-8, 8)

    def reparameterise(self, mu, logvar):
        if not self.training:
            return mu
        return mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)

    def decode(self, z):
        return self.dec(self.from_z(z))

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterise(mu, logvar)), mu, logvar


def elbo_terms(logits, x, mu, logvar):
    """Reconstruction (nats, summed over pixels) and KL(q||N(0,1)), batch means."""
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").flatten(1).sum(1)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1)
    return rec.mean(), kl.mean()
