"""GAN that learns eight Gaussians on a ring."""

import argparse
import math
import os
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--n_epochs", type=int, default=12)
parser.add_argument("--batch_size", type=int, default=128)
parser.add_argument("--lr_g", type=float, default=1e-3)
parser.add_argument("--lr_d", type=float, default=1e-3)
parser.add_argument("--b1", type=float, default=0.5)
parser.add_argument("--b2", type=float, default=0.999)
parser.add_argument("--latent_dim", type=int, default=8)
parser.add_argument("--sample_interval", type=int, default=25)
opt = parser.parse_args()

seed = int(os.environ.get("SEED", "0"))
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)

N_MODES = 8
angles = torch.arange(N_MODES) * 2 * math.pi / N_MODES
centers = torch.stack([torch.cos(angles), torch.sin(angles)], dim=1)


def sample_ring(n):
    which = torch.randint(N_MODES, (n,))
    return centers[which] + 0.1 * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(opt.latent_dim, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Linear(64, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Linear(64, 2),
        )

    def forward(self, z):
        return self.model(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(
            nn.Linear(2, 64),
            nn.LeakyReLU(0.2),
            nn.Linear(64, 64),
            nn.LeakyReLU(0.2),
            nn.Linear(64, 1),
        )

    def forward(self, x):
        return self.model(x)


@torch.no_grad()
def energy_distance(generator, real, n=512):
    """Distance between the generated and the real distribution (0 = equal)."""
    generator.eval()
    fake = generator(torch.randn(n, opt.latent_dim))
    generator.train()
    real = real[:n]
    cross = torch.cdist(fake, real).mean()
    return (2 * cross - torch.cdist(fake, fake).mean() - torch.cdist(real, real).mean()).item()


adversarial_loss = nn.BCEWithLogitsLoss()
generator = Generator()
discriminator = Discriminator()

dataloader = DataLoader(
    TensorDataset(sample_ring(8192)), batch_size=opt.batch_size, shuffle=True, drop_last=True
)
held_out = sample_ring(1024)

optimizer_G = torch.optim.Adam(generator.parameters(), lr=opt.lr_g, betas=(opt.b1, opt.b2))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=opt.lr_d, betas=(opt.b1, opt.b2))

for epoch in range(opt.n_epochs):
    for i, (points,) in enumerate(dataloader):
        valid = torch.ones(points.size(0), 1)
        fake = torch.zeros(points.size(0), 1)

        # -----------------
        #  Train Generator
        # -----------------
        optimizer_G.zero_grad()
        z = torch.randn(points.size(0), opt.latent_dim)
        gen_points = generator(z)
        g_loss = adversarial_loss(discriminator(gen_points), valid)
        g_loss.backward()
        optimizer_G.step()

        # ---------------------
        #  Train Discriminator
        # ---------------------
        optimizer_D.zero_grad()
        real_loss = adversarial_loss(discriminator(points), valid)
        fake_loss = adversarial_loss(discriminator(gen_points.detach()), fake)
        d_loss = (real_loss + fake_loss) / 2
        d_loss.backward()
        optimizer_D.step()

        if i % opt.sample_interval == 0:
            print(
                f"[Epoch {epoch}/{opt.n_epochs}] [Batch {i}/{len(dataloader)}] "
                f"[D loss: {d_loss.item():f}] [G loss: {g_loss.item():f}]"
            )
    distance = energy_distance(generator, held_out)
    print(f"[Epoch {epoch}/{opt.n_epochs}] energy distance: {distance:.4f}")

Path("checkpoints").mkdir(exist_ok=True)
torch.save(generator.state_dict(), "checkpoints/generator.pth")
torch.save(discriminator.state_dict(), "checkpoints/discriminator.pth")
