import torch
from torch import nn
import torch.nn.functional as F


class ConditionalVAE(nn.Module):
    def __init__(self, x_dim, n_cond, z_dim=8, hidden=128):
        super().__init__()
        self.n_cond, self.z_dim = n_cond, z_dim
        self.enc = nn.Sequential(nn.Linear(x_dim + n_cond, hidden), nn.Tanh())
        self.mu = nn.Linear(hidden, z_dim)
        self.logvar = nn.Linear(hidden, z_dim)
        self.dec = nn.Sequential(
            nn.Linear(z_dim + n_cond, hidden),
            nn.Tanh(),
            nn.Linear(hidden, x_dim),
        )

    def one_hot(self, c):
        return F.one_hot(c, self.n_cond).float()

    def encode(self, x, c):
        h = self.enc(torch.cat([x, self.one_hot(c)], dim=-1))
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        return mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)

    def decode(self, z):
        return self.dec(z)

    def forward(self, x, c):
        mu, logvar = self.encode(x, c)
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar

    @torch.no_grad()
    def sample(self, c):
        z = torch.randn(len(c), self.z_dim)
        return torch.sigmoid(self.dec(torch.cat([z, self.one_hot(c)], dim=-1)))


def elbo(recon_logits, x, mu, logvar, beta=1.0):
    rec = F.binary_cross_entropy_with_logits(recon_logits, x, reduction="none").sum(1)
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1)
    return (rec + beta * kl).mean()
