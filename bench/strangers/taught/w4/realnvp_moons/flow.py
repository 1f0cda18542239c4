"""RealNVP on two moons, following Dinh et al. 2017 (density estimation using Real NVP)."""
import math

import torch
import torch.nn as nn
from sklearn.datasets import make_moons


def mlp(n_in, n_hidden, n_out, last=None):
    layers = [
        nn.Linear(n_in, n_hidden), nn.LeakyReLU(0.01),
        nn.Linear(n_hidden, n_hidden), nn.LeakyReLU(0.01),
        nn.Linear(n_hidden, n_out),
    ]
    if last is not None:
        layers.append(last)
    return nn.Sequential(*layers)


class AffineCoupling(nn.Module):
    def __init__(self, dim, hidden, flip):
        super().__init__()
        half = dim // 2
        self.keep = slice(half, dim) if flip else slice(0, half)
        self.move = slice(0, half) if flip else slice(half, dim)
        self.scale = mlp(half, hidden, dim - half, nn.Tanh())
        self.shift = mlp(half, hidden, dim - half)

    def forward(self, z):
        """data -> latent, returns z and log|det J|"""
        a = z[:, self.keep]
        s, t = self.scale(a), self.shift(a)
        z[:, self.move] = z[:, self.move] * torch.exp(s) + t
        return z, s.sum(dim=1)

    @torch.no_grad()
    def inverse(self, z):
        a = z[:, self.keep]
        s, t = self.scale(a), self.shift(a)
        z[:, self.move] = (z[:, self.move] - t) * torch.exp(-s)
        return z


class RealNVP(nn.Module):
    def __init__(self, dim=2, hidden=64, n_layers=6):
        super().__init__()
        self.dim = dim
        self.layers = nn.ModuleList(
            AffineCoupling(dim, hidden, flip=bool(i % 2)) for i in range(n_layers)
        )

    def log_prob(self, x):
        z = x.clone()
        logdet = torch.zeros(len(x))
        for layer in self.layers:
            z, ld = layer(z)
            logdet = logdet + ld
        log_pz = -0.5 * (z ** 2).sum(dim=1) - 0.5 * self.dim * math.log(2 * math.pi)
        return log_pz + logdet

    def sample(self, n):
        z = torch.randn(n, self.dim)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


if __name__ == "__main__":
    torch.manual_seed(1)
    flow = RealNVP()
    opt = torch.optim.Adam(flow.parameters(), lr=1e-3)

    for it in range(1, 1501):
        x, _ = make_moons(n_samples=256, noise=0.05)
        x = torch.from_numpy(x).float()
        loss = -flow.log_prob(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % 250 == 0:
            print(f"iter {it:5d}  nll {loss.item():.3f}")

    pts = flow.sample(1000)
    print("sample mean", pts.mean(0).tolist(), "std", pts.std(0).tolist())
