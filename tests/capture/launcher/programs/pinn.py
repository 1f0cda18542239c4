"""A physics-informed network for u'' = -u with u(0) = 0 and u'(0) = 1."""

import torch
from torch import nn

torch.manual_seed(25)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)


def derivative(u, t):
    return torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]


for step in range(300):
    t = (3 * torch.rand(64, 1)).requires_grad_()
    u = net(t)
    residual = derivative(derivative(u, t), t) + u
    zero = torch.zeros(1, 1, requires_grad=True)
    start = net(zero)
    loss = (
        residual.pow(2).mean() + start.pow(2).mean() + (derivative(start, zero) - 1).pow(2).mean()
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item()!r}")
