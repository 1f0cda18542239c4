"""WGAN with gradient penalty on the two moons."""
import torch
from sklearn.datasets import make_moons
from torch import nn

Z, CRITIC_STEPS, LAMBDA = 4, 3, 1.0


def block(i, o, act=True):
    return [nn.Linear(i, o)] + ([nn.LeakyReLU(0.2)] if act else [])


class WGAN:
    def __init__(self, data):
        self.data = data
        self.G = nn.Sequential(*block(Z, 64), *block(64, 64), *block(64, 2, act=False))
        self.D = nn.Sequential(*block(2, 64), *block(64, 64), *block(64, 1, act=False))
        self.opt_G = torch.optim.Adam(self.G.parameters(), lr=1e-3, betas=(0.0, 0.9))
        self.opt_D = torch.optim.Adam(self.D.parameters(), lr=1e-3, betas=(0.0, 0.9))

    def real(self, n):
        return self.data[torch.randint(len(self.data), (n,))]

    def penalty(self, real, fake):
        t = torch.rand(len(real), 1)
        mix = (t * real + (1 - t) * fake).requires_grad_()
        grad, = torch.autograd.grad(self.D(mix).sum(), mix, create_graph=True)
        return LAMBDA * (grad.norm(dim=1) - 1).pow(2).mean()

    def critic_step(self, n):
        real = self.real(n)
        with torch.no_grad():
            fake = self.G(torch.randn(n, Z))
        gap = self.D(fake).mean() - self.D(real).mean()
        loss = gap + self.penalty(real, fake)
        self.opt_D.zero_grad()
        loss.backward()
        self.opt_D.step()
        return -gap.item()

    def generator_step(self, n):
        self.D.requires_grad_(False)
        loss = -self.D(self.G(torch.randn(n, Z))).mean()
        self.opt_G.zero_grad()
        loss.backward()
        self.opt_G.step()
        self.D.requires_grad_(True)

    def distance(self, n=500):
        """Energy distance between samples and data."""
        with torch.no_grad():
            a, b = self.G(torch.randn(n, Z)), self.real(n)
            return (2 * torch.cdist(a, b).mean() - torch.cdist(a, a).mean() - torch.cdist(b, b).mean()).item()


if __name__ == "__main__":
    torch.manual_seed(0)
    pts, _ = make_moons(2000, noise=0.05, random_state=0)
    gan = WGAN(torch.tensor(pts - pts.mean(0), dtype=torch.float32))
    for it in range(401):
        for _ in range(CRITIC_STEPS):
            w = gan.critic_step(128)
        gan.generator_step(128)
        if it % 100 == 0:
            print(f"iter {it:4d}  wasserstein estimate {w:.3f}  energy distance {gan.distance():.4f}")
