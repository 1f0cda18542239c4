import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def ring(n, modes=8, sd=0.05):
    a = 2 * math.pi * torch.randint(modes, (n,)) / modes
    return torch.stack([a.cos(), a.sin()], 1) + sd * torch.randn(n, 2)


def mlp(i, o, w=96):
    return nn.Sequential(nn.Linear(i, w), nn.LeakyReLU(0.2), nn.Linear(w, w), nn.LeakyReLU(0.2), nn.Linear(w, o))


class GAN:
    def __init__(self, z=8, lr_g=1e-3, lr_d=2e-3, r1=0.1):
        self.z, self.r1 = z, r1
        self.G, self.D = mlp(z, 2), mlp(2, 1)
        self.opt_g = torch.optim.Adam(self.G.parameters(), lr_g, betas=(0.5, 0.99))
        self.opt_d = torch.optim.Adam(self.D.parameters(), lr_d, betas=(0.5, 0.99))

    def noise(self, n):
        return torch.randn(n, self.z)

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.G(self.noise(len(real)))
        real = real.clone().requires_grad_(True)
        d_real, d_fake = self.D(real), self.D(fake)
        slope, = torch.autograd.grad(d_real.sum(), real, create_graph=True)
        loss = F.softplus(-d_real).mean() + F.softplus(d_fake).mean()
        total = loss + 0.5 * self.r1 * slope.square().sum(1).mean()
        self.opt_d.zero_grad()
        total.backward()
        self.opt_d.step()
        return loss.item()

    def generator_step(self, n):
        self.D.requires_grad_(False)
        loss = F.softplus(-self.D(self.G(self.noise(n)))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        self.D.requires_grad_(True)
        return loss.item()

    @torch.no_grad()
    def coverage(self, n=1000, modes=8):
        s = self.G(self.noise(n))
        a = 2 * math.pi * torch.arange(modes) / modes
        centres = torch.stack([a.cos(), a.sin()], 1)
        dist, which = torch.cdist(s, centres).min(1)
        good = dist < 0.2
        return which[good].unique().numel(), good.float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(14)
    gan = GAN()
    for it in range(1, 1201):
        d = gan.critic_step(ring(128))
        g = gan.generator_step(128)
        if it % 300 == 0:
            m, q = gan.coverage()
            print(f"{it} D {d:.3f} G {g:.3f} modes {m}/8 quality {q:.2f}")
