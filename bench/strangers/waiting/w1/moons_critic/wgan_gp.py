"""WGAN-GP on two moons."""
import torch
import torch.nn as nn
from sklearn.datasets import make_moons


def mlp(i, o, h=64, act=nn.ReLU):
    return nn.Sequential(nn.Linear(i, h), act(), nn.Linear(h, h), act(), nn.Linear(h, o))


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1)
    inter = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    score = critic(inter)
    grad, = torch.autograd.grad(score.sum(), inter, create_graph=True)
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


def infinite(x, bs):
    while True:
        for idx in torch.randperm(len(x)).split(bs):
            if len(idx) == bs:
                yield x[idx]


def train(steps=400, n_critic=4, bs=128, zdim=4, lam=1.0):
    torch.manual_seed(0)
    X, _ = make_moons(2000, noise=0.05, random_state=0)
    X = torch.tensor(X, dtype=torch.float32)
    X = (X - X.mean(0)) / X.std(0)
    stream = infinite(X, bs)

    gen, critic = mlp(zdim, 2), mlp(2, 1, act=nn.SiLU)
    opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.0, 0.9))
    opt_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))

    for step in range(1, steps + 1):
        for _ in range(n_critic):
            real = next(stream)
            with torch.no_grad():
                fake = gen(torch.randn(bs, zdim))
            wdist = critic(real).mean() - critic(fake).mean()
            loss_c = -wdist + lam * gradient_penalty(critic, real, fake)
            opt_c.zero_grad()
            loss_c.backward()
            opt_c.step()

        # the critic collects gradients here too; they are dropped by its zero_grad above
        loss_g = -critic(gen(torch.randn(bs, zdim))).mean()
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()

        if step % 100 == 0:
            with torch.no_grad():
                s = gen(torch.randn(1000, zdim))
                near = torch.cdist(s, X).min(1).values.mean()
            print(f"{step} W {wdist.item():.4f} distance to data {near.item():.4f}")


if __name__ == "__main__":
    train()
