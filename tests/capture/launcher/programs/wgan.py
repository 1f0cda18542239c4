"""Wasserstein GAN with a gradient penalty: five critic steps for one of the generator."""

import torch
from torch import nn

torch.manual_seed(32)
data = torch.randn(2000, 2) * 0.3 + torch.tensor([[1.0, -1.0]]).repeat(2000, 1)
data[::2] += torch.tensor([-2.0, 2.0])
generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer_g = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9))
optimizer_c = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
for step in range(100):
    for _ in range(5):
        real = data[torch.randint(0, 2000, (64,))]
        fake = generator(torch.randn(64, 4)).detach()
        mix = torch.rand(64, 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = 10 * (slope.norm(dim=1) - 1).pow(2).mean()
        loss_c = critic(fake).mean() - critic(real).mean() + penalty
        optimizer_c.zero_grad()
        loss_c.backward()
        optimizer_c.step()
    loss_g = -critic(generator(torch.randn(64, 4))).mean()
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
    if step % 10 == 0:
        print(f"step {step} critic {loss_c.item()!r} generator {loss_g.item()!r}")
