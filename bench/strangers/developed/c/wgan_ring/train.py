import argparse, math
import torch
from torch import nn, autograd, optim


def ring(n, gen, modes=8, r=2.0, s=0.05):
    k = torch.randint(modes, (n,), generator=gen)
    a = 2 * math.pi * k / modes
    return torch.stack([r * a.cos(), r * a.sin()], 1) + s * torch.randn(n, 2, generator=gen)


def endless(batch, gen):
    while True:
        yield ring(batch, gen)


def mlp(*dims):
    out = []
    for a, b in zip(dims, dims[1:]):
        out += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*out[:-1])


class WGANGP:
    def __init__(self, zdim=4, lam=1.0, n_critic=4, lr=1e-3):
        self.zdim, self.lam, self.n_critic = zdim, lam, n_critic
        self.G, self.D = mlp(zdim, 64, 64, 2), mlp(2, 64, 64, 1)
        self.og = optim.Adam(self.G.parameters(), lr, betas=(0.0, 0.9))
        self.od = optim.Adam(self.D.parameters(), lr, betas=(0.0, 0.9))

    def z(self, n):
        return torch.randn(n, self.zdim)

    def penalty(self, real, fake):
        eps = torch.rand(len(real), 1)
        mid = (eps * real + (1 - eps) * fake).requires_grad_(True)
        (g,) = autograd.grad(self.D(mid).sum(), mid, create_graph=True)
        return ((g.pow(2).sum(1) + 1e-12).sqrt() - 1).pow(2).mean()

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.G(self.z(len(real)))
        loss = self.D(fake).mean() - self.D(real).mean() + self.lam * self.penalty(real, fake)
        self.od.zero_grad(set_to_none=True)
        loss.backward()
        self.od.step()
        return loss.item()

    def generator_step(self, n):
        self.D.requires_grad_(False)
        loss = -self.D(self.G(self.z(n))).mean()
        self.og.zero_grad(set_to_none=True)
        loss.backward()
        self.og.step()
        self.D.requires_grad_(True)
        return loss.item()

    @torch.no_grad()
    def sample(self, n):
        self.G.eval()
        x = self.G(self.z(n))
        self.G.train()
        return x


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--iters", type=int, default=400)
    p.add_argument("--batch", type=int, default=128)
    a = p.parse_args()
    torch.manual_seed(0)
    data = endless(a.batch, torch.Generator().manual_seed(1))
    reference = ring(1000, torch.Generator().manual_seed(2))
    gan = WGANGP()
    for it in range(1, a.iters + 1):
        for _ in range(gan.n_critic):
            d = gan.critic_step(next(data))
        g = gan.generator_step(a.batch)
        if it % 100 == 0:
            x = gan.sample(1000)
            near = torch.cdist(x, reference).min(1).values
            print(f"{it} D {d:.3f} G {g:.3f} mean distance to ring {near.mean():.3f}")
