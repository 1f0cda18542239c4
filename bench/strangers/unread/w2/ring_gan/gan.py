# GAN on a ring of gaussians
import math
import torch, torch.nn as nn

torch.manual_seed(2)
Z, H, B = 8, 64, 128


def real(n):
    k = torch.randint(8, (n,))
    a = 2 * math.pi * k / 8
    return torch.stack([a.cos(), a.sin()], 1) * 2 + 0.05 * torch.randn(n, 2)


class Discriminator(nn.Module):
    """Returns the probability that a point is real."""

    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2, H), nn.LeakyReLU(.2), nn.Linear(H, H), nn.LeakyReLU(.2), nn.Linear(H, 1))

    def forward(self, x):
        return self.f(x).sigmoid().squeeze(1)


G = nn.Sequential(nn.Linear(Z, H), nn.ReLU(), nn.Linear(H, H), nn.ReLU(), nn.Linear(H, 2))
D = Discriminator()
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(.5, .999))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(.5, .999))
bce = nn.BCELoss()
ones, zeros = torch.ones(B), torch.zeros(B)

for it in range(1, 801):
    # discriminator
    fake = G(torch.randn(B, Z)).detach()
    loss_d = bce(D(real(B)), 0.9 * ones) + bce(D(fake), zeros)
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()

    # generator: D's parameters collect gradients here, cleared at the start of its own step
    loss_g = bce(D(G(torch.randn(B, Z))), ones)
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()

    if it % 200 == 0:
        with torch.no_grad():
            s = G(torch.randn(1000, Z))
        print(f"{it:5d} D {loss_d.item():.3f} G {loss_g.item():.3f} radius {s.norm(dim=1).mean():.2f} +- {s.norm(dim=1).std():.2f}")
