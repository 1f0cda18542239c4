"""Wasserstein GAN with gradient penalty on the two moons."""
import torch
import torch.nn as nn
from sklearn.datasets import make_moons

torch.manual_seed(0)
Z, BATCH, CRITIC_STEPS, LAMBDA = 8, 128, 4, 5.0

points, _ = make_moons(4000, noise=0.06, random_state=0)
points = torch.tensor(points, dtype=torch.float32)
points = (points - points.mean(0)) / points.std(0)


def mlp(i, o, h=64):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


G, C = mlp(Z, 2), mlp(2, 1)
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(C.parameters(), lr=1e-3, betas=(0.5, 0.9))


def penalty(real, fake):
    eps = torch.rand(len(real), 1)
    mid = (eps * real + (1 - eps) * fake).requires_grad_(True)
    (grad,) = torch.autograd.grad(C(mid).sum(), mid, create_graph=True)
    return ((grad.norm(dim=1) - 1) ** 2).mean()


def energy_distance(a, b):
    return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


def sample_real():
    return points[torch.randint(0, len(points), (BATCH,))]


for step in range(401):
    for _ in range(CRITIC_STEPS):
        real = sample_real()
        with torch.no_grad():
            fake = G(torch.randn(BATCH, Z))
        wasserstein = C(real).mean() - C(fake).mean()
        loss_c = -wasserstein + LAMBDA * penalty(real, fake)
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()

    # the critic also receives gradients here; they are dropped by opt_c.zero_grad() above
    loss_g = -C(G(torch.randn(BATCH, Z))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if step % 100 == 0:
        with torch.no_grad():
            dist = energy_distance(G(torch.randn(800, Z)), points[:800])
        print(f"step {step:4d}  W {wasserstein.item():.3f}  energy distance {dist:.4f}")
