import torch
from torch import autograd, nn


def mlp(*sizes, act=nn.LeakyReLU):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


class RingGAN:
    """WGAN-GP. The critic is updated `n_critic` times per generator step; generator frozen meanwhile."""

    def __init__(self, z_dim=4, lr=1e-3, gp=1.0, n_critic=4):
        self.z_dim, self.gp, self.n_critic = z_dim, gp, n_critic
        self.gen, self.critic = mlp(z_dim, 48, 48, 2), mlp(2, 48, 48, 1)
        self.g_opt = torch.optim.Adam(self.gen.parameters(), lr, betas=(0.0, 0.9))
        self.c_opt = torch.optim.Adam(self.critic.parameters(), lr, betas=(0.0, 0.9))

    def sample(self, n):
        return self.gen(torch.randn(n, self.z_dim))

    def penalty(self, real, fake):
        mix = torch.rand(len(real), 1)
        point = (mix * real + (1 - mix) * fake).requires_grad_(True)
        grad, = autograd.grad(self.critic(point).sum(), point, create_graph=True)
        return (grad.norm(dim=1) - 1).pow(2).mean()

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.sample(len(real))
        loss = self.critic(fake).mean() - self.critic(real).mean() + self.gp * self.penalty(real, fake)
        self.c_opt.zero_grad(set_to_none=True)
        loss.backward()
        self.c_opt.step()
        return loss.item()

    def generator_step(self, n):
        self.critic.requires_grad_(False)
        loss = -self.critic(self.sample(n)).mean()
        self.g_opt.zero_grad(set_to_none=True)
        loss.backward()
        self.g_opt.step()
        self.critic.requires_grad_(True)
        return loss.item()
