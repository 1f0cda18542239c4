"""Eight Gaussians on a ring, hinge GAN with two critic updates for each generator update."""
import math

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(0)
Z, BATCH, ROUNDS = 8, 96, 500
angles = torch.arange(8) * math.pi / 4
modes = torch.stack([angles.cos(), angles.sin()], dim=1) * 2


def real(n):
    return modes[torch.randint(8, (n,))] + 0.08 * torch.randn(n, 2)


generator = nn.Sequential(nn.Linear(Z, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
critic = nn.Sequential(
    spectral_norm(nn.Linear(2, 64)), nn.LeakyReLU(0.2),
    spectral_norm(nn.Linear(64, 64)), nn.LeakyReLU(0.2),
    nn.Linear(64, 1),
)
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=4e-3, betas=(0.5, 0.9))


def critic_step():
    with torch.no_grad():
        fake = generator(torch.randn(BATCH, Z))
    loss = (1 - critic(real(BATCH))).relu().mean() + (1 + critic(fake)).relu().mean()
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
    return loss.item()


def generator_step():
    critic.requires_grad_(False)
    loss = -critic(generator(torch.randn(BATCH, Z))).mean()
    opt_g.zero_grad()
    loss.backward()
    opt_g.step()
    critic.requires_grad_(True)
    return loss.item()


@torch.no_grad()
def coverage(n=1000):
    pts = generator(torch.randn(n, Z))
    dist, nearest = torch.cdist(pts, modes).min(dim=1)
    good = dist < 0.5
    return good.float().mean().item(), nearest[good].unique().numel()


print("before training:  within 0.5 of a mode %.2f, modes hit %d" % coverage())
for rnd in range(1, ROUNDS + 1):
    for _ in range(2):
        c_loss = critic_step()
    g_loss = generator_step()
    if rnd % 100 == 0:
        quality, hit = coverage()
        print(f"round {rnd:4d}  critic {c_loss:.3f}  generator {g_loss:+.3f}  close {quality:.2f}  modes {hit}/8")
