# WGAN-GP, 8 gaussians on a ring. 5 critic steps per generator step.
import itertools
import math

import torch
from torch import autograd, nn, optim

torch.manual_seed(0)
Z, LAMBDA, N_CRITIC, BS = 4, 1.0, 5, 128


def real_stream():
    centres = torch.tensor([(2 * math.cos(a), 2 * math.sin(a)) for a in torch.arange(8) * math.pi / 4])
    while True:
        yield centres[torch.randint(0, 8, (BS,))] + 0.05 * torch.randn(BS, 2)


def mlp(i, o, h=64):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


G, D = mlp(Z, 2), mlp(2, 1)
opt_g = optim.Adam(G.parameters(), lr=5e-4, betas=(0.5, 0.9))
opt_d = optim.Adam(D.parameters(), lr=5e-4, betas=(0.5, 0.9))
data = real_stream()


def penalty(real, fake):
    a = torch.rand(len(real), 1)
    mix = (a * real + (1 - a) * fake).requires_grad_(True)
    grad, = autograd.grad(D(mix).sum(), mix, create_graph=True)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


for it in itertools.count(1):
    for p in D.parameters():
        p.requires_grad_(True)
    for _ in range(N_CRITIC):
        real = next(data)
        with torch.no_grad():
            fake = G(torch.randn(BS, Z))
        w = D(real).mean() - D(fake).mean()
        opt_d.zero_grad()
        (-w + LAMBDA * penalty(real, fake)).backward()
        opt_d.step()

    for p in D.parameters():          # no need for gradients in the critic here
        p.requires_grad_(False)
    opt_g.zero_grad()
    (-D(G(torch.randn(BS, Z))).mean()).backward()
    opt_g.step()

    if it % 50 == 0:
        with torch.no_grad():
            s = G(torch.randn(1000, Z))
        print(f"{it:4d} W={w.item():.3f} mean radius={s.norm(dim=1).mean():.3f}")
    if it == 200:
        break
