"""WGAN with gradient penalty on the two moons."""
import numpy as np
import torch
from sklearn.datasets import make_moons
from torch import autograd, nn
from tqdm import tqdm


def mlp(sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


class WGANGP:
    def __init__(self, z_dim=6, width=64, n_critic=5, gp=1.0, seed=0):
        torch.manual_seed(seed)
        self.z_dim, self.n_critic, self.gp = z_dim, n_critic, gp
        self.gen, self.critic = mlp([z_dim, width, width, 2]), mlp([2, width, width, 1])
        kw = dict(lr=1e-3, betas=(0.0, 0.9))
        self.g_opt = torch.optim.Adam(self.gen.parameters(), **kw)
        self.c_opt = torch.optim.Adam(self.critic.parameters(), **kw)

    def sample(self, n):
        return self.gen(torch.randn(n, self.z_dim))

    def penalty(self, real, fake):
        mix = torch.rand(len(real), 1)
        point = (mix * real + (1 - mix) * fake).requires_grad_(True)
        (slope,) = autograd.grad(self.critic(point).sum(), point, create_graph=True)
        return (slope.norm(dim=1) - 1).pow(2).mean()

    def critic_update(self, real):
        with torch.no_grad():
            fake = self.sample(len(real))
        gap = self.critic(fake).mean() - self.critic(real).mean()
        loss = gap + self.gp * self.penalty(real, fake)
        self.c_opt.zero_grad()
        loss.backward()
        self.c_opt.step()
        return -gap.item()

    def generator_update(self, n):
        self.critic.requires_grad_(False)
        loss = -self.critic(self.sample(n)).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
        self.critic.requires_grad_(True)

    def fit(self, data, iters, batch=128):
        for it in tqdm(range(1, iters + 1), disable=True):
            real = data[torch.randint(len(data), (batch,))]
            w = self.critic_update(real)
            if it % self.n_critic == 0:
                self.generator_update(batch)
            if it % 500 == 0:
                print(f"iter {it} wasserstein estimate {w:.4f} sliced distance {sliced(self.sample(1000).detach(), data[:1000]):.4f}")


def sliced(a, b, n=32):
    d = torch.nn.functional.normalize(torch.randn(2, n), dim=0)
    return ((a @ d).sort(0)[0] - (b @ d).sort(0)[0]).abs().mean().item()


if __name__ == "__main__":
    points, _ = make_moons(4000, noise=0.05, random_state=0)
    data = torch.tensor((points - points.mean(0)) / points.std(0), dtype=torch.float32)
    gan = WGANGP()
    gan.fit(data, 2500)
    out = gan.sample(1000).detach().numpy()
    print("spread of samples", np.round(out.std(0), 2), "of data", np.round(data.numpy().std(0), 2))
