"""A GAN that learns a mixture of four blobs."""

import os

import torch
from torch import nn, optim

SEED = int(os.environ.get("SEED", "0"))
LATENT = 8
BATCH = 128
STEPS = 700
CENTERS = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])

torch.manual_seed(SEED)


def sample_real(n):
    which = torch.randint(0, 4, (n,))
    return CENTERS[which] + 0.15 * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(LATENT, 64),
            nn.ReLU(),
            nn.Linear(64, 64),
            nn.ReLU(),
            nn.Linear(64, 2),
        )

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, 64),
            nn.LeakyReLU(0.2),
            nn.Linear(64, 64),
            nn.LeakyReLU(0.2),
            nn.Linear(64, 1),
        )

    def forward(self, x):
        return self.net(x)


def mmd(a, b):
    """Kernel distance between two sets of points."""

    def kernel(u, v):
        return torch.exp(-torch.cdist(u, v).pow(2) / 0.5).mean()

    return (kernel(a, a) + kernel(b, b) - 2 * kernel(a, b)).item()


G, D = Generator(), Discriminator()
criterion = nn.BCEWithLogitsLoss()
opt_g = optim.Adam(G.parameters(), lr=2e-3, betas=(0.0, 0.9))
opt_d = optim.Adam(D.parameters(), lr=2e-3, betas=(0.0, 0.9))
real_label = torch.ones(BATCH, 1)
fake_label = torch.zeros(BATCH, 1)

for step in range(1, STEPS + 1):
    # discriminator
    real = sample_real(BATCH)
    z = torch.randn(BATCH, LATENT)
    fake = G(z)
    d_loss = criterion(D(real), real_label) + criterion(D(fake.detach()), fake_label)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()

    # generator
    g_loss = criterion(D(fake), real_label)
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()

    if step % 50 == 0:
        with torch.no_grad():
            points = G(torch.randn(1000, LATENT))
        modes = torch.cdist(points, CENTERS).argmin(1).unique().numel()
        distance = mmd(points, sample_real(1000))
        print(
            f"[{step:4d}/{STEPS}] Loss_D: {d_loss.item():.4f} Loss_G: {g_loss.item():.4f} "
            f"modes: {modes} mmd: {distance:.4f}"
        )
