"""WGAN-GP on a ring of Gaussians; samples are drawn from an EMA copy of the generator."""
import copy
import math

import torch
from torch import autograd, nn

torch.manual_seed(8)
DEV = "cuda" if torch.cuda.is_available() else "cpu"
Z, N_CRITIC, GP, DECAY = 4, 3, 0.5, 0.98


def ring(n):
    k = torch.randint(0, 8, (n,))
    a = 2 * math.pi * k / 8
    return (torch.stack([a.cos(), a.sin()], 1) * 2 + 0.05 * torch.randn(n, 2)).to(DEV)


def mlp(i, o, h=64):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o)).to(DEV)


gen, critic = mlp(Z, 2), mlp(2, 1)
gen_avg = copy.deepcopy(gen).requires_grad_(False).eval()
opt_g = torch.optim.Adam(gen.parameters(), 1e-3, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.5, 0.9))


def penalty(real, fake):
    mix = torch.rand(len(real), 1, device=DEV)
    x = (mix * real + (1 - mix) * fake).requires_grad_(True)
    g, = autograd.grad(critic(x).sum(), x, create_graph=True)
    return (g.norm(dim=1) - 1).square().mean()


@torch.no_grad()
def update_average():
    for a, p in zip(gen_avg.parameters(), gen.parameters()):
        a.lerp_(p, 1 - DECAY)


@torch.no_grad()
def quality(n=1000):
    s = gen_avg(torch.randn(n, Z, device=DEV))
    a = 2 * math.pi * torch.arange(8, device=DEV) / 8
    modes = torch.stack([a.cos(), a.sin()], 1) * 2
    d, k = torch.cdist(s, modes).min(1)
    return (d < 0.3).float().mean().item(), k[d < 0.3].unique().numel()


for step in range(1, 401):
    for _ in range(N_CRITIC):
        real = ring(128)
        with torch.no_grad():
            fake = gen(torch.randn(128, Z, device=DEV))
        gap = critic(real).mean() - critic(fake).mean()
        loss_c = GP * penalty(real, fake) - gap
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()

    # the critic collects gradients here as well; they are dropped by its zero_grad above
    loss_g = -critic(gen(torch.randn(128, Z, device=DEV))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    update_average()

    if step % 100 == 0:
        near, modes = quality()
        print(f"{step}: W~{gap.item():.3f} G {loss_g.item():.3f}  near a mode {near:.2f}, modes {modes}/8")
