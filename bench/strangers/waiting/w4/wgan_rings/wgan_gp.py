# WGAN-GP on eight gaussians
import math

import torch
from torch import autograd, nn

torch.manual_seed(0)
BS, LAMBDA, N_CRITIC = 128, 1.0, 5
angles = torch.arange(8) * math.pi / 4
CENTERS = 2 * torch.stack([angles.cos(), angles.sin()], 1)


def real_batch():
    return CENTERS[torch.randint(8, (BS,))] + 0.05 * torch.randn(BS, 2)


def net(i, o):
    return nn.Sequential(nn.Linear(i, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, o))


G, C = net(4, 2), net(2, 1)
g_opt = torch.optim.Adam(G.parameters(), lr=5e-4, betas=(0.5, 0.9))
c_opt = torch.optim.Adam(C.parameters(), lr=5e-4, betas=(0.5, 0.9))


def gradient_penalty(real, fake):
    t = torch.rand(len(real), 1)
    x = (t * real + (1 - t) * fake).requires_grad_(True)
    (g,) = autograd.grad(C(x).sum(), x, create_graph=True)
    return ((g.norm(2, dim=1) - 1) ** 2).mean()


@torch.no_grad()
def coverage(n=2000):
    d = torch.cdist(G(torch.randn(n, 4)), CENTERS)
    near, which = d.min(1)
    good = near < 0.35
    return good.float().mean().item(), which[good].unique().numel()


history = []
for it in range(1, 601):
    for p in C.parameters():
        p.requires_grad_(True)
    for _ in range(N_CRITIC):
        real = real_batch()
        with torch.no_grad():
            fake = G(torch.randn(BS, 4))
        w_dist = C(real).mean() - C(fake).mean()
        c_loss = -w_dist + LAMBDA * gradient_penalty(real, fake)
        c_opt.zero_grad(set_to_none=True)
        c_loss.backward()
        c_opt.step()

    # no need for critic gradients in the generator step
    for p in C.parameters():
        p.requires_grad_(False)
    g_loss = -C(G(torch.randn(BS, 4))).mean()
    g_opt.zero_grad(set_to_none=True)
    g_loss.backward()
    g_opt.step()

    history.append(w_dist.detach())
    if it % 150 == 0:
        ok, modes = coverage()
        print(f"{it} W {torch.stack(history[-50:]).mean().item():.3f} on-mode {ok:.2f} modes {modes}/8")
