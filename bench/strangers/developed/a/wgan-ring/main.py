"""WGAN-GP on eight Gaussians."""
import argparse
import math

import torch

from networks import build
from objectives import critic_objective, generator_objective

ap = argparse.ArgumentParser()
ap.add_argument("--noise", type=int, default=4)
ap.add_argument("--iters", type=int, default=200)
ap.add_argument("--critic-iters", type=int, default=4)
ap.add_argument("--gp", type=float, default=2.0)
ap.add_argument("--batch", type=int, default=128)
ap.add_argument("--seed", type=int, default=3)
opt = ap.parse_args()

torch.manual_seed(opt.seed)
CENTERS = torch.tensor([[2 * math.cos(k * math.pi / 4), 2 * math.sin(k * math.pi / 4)] for k in range(8)])


def real_batches(n):
    while True:
        yield CENTERS[torch.randint(8, (n,))] + 0.1 * torch.randn(n, 2)


G, C = build(opt.noise)
g_opt = torch.optim.Adam(G.parameters(), lr=5e-4, betas=(0.0, 0.9))
c_opt = torch.optim.Adam(C.parameters(), lr=1e-3, betas=(0.0, 0.9))
source = real_batches(opt.batch)


@torch.no_grad()
def coverage():
    G.eval()
    x = G(torch.randn(1000, opt.noise))
    d = torch.cdist(x, CENTERS)
    near = d.min(1)
    G.train()
    return (near.values < 0.5).float().mean().item(), near.indices[near.values < 0.5].unique().numel()


for it in range(1, opt.iters + 1):
    # several critic updates for each update of the generator
    for _ in range(opt.critic_iters):
        real = next(source)
        with torch.no_grad():
            fake = G(torch.randn(opt.batch, opt.noise))
        c_loss, distance = critic_objective(C, real, fake, opt.gp)
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()

    C.requires_grad_(False)          # the generator's pass needs no gradients of the critic's weights
    g_loss = generator_objective(C, G(torch.randn(opt.batch, opt.noise)))
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
    C.requires_grad_(True)

    if it % 50 == 0:
        share, modes = coverage()
        print(f"{it:4d}  W ~ {distance.item():.3f}  near a mode {share:.2f}  modes {modes}/8")
