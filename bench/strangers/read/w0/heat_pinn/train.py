import torch
from torch import nn

torch.manual_seed(1)
ALPHA = 0.1


class Mlp(nn.Module):
    def __init__(self, h=32):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(2, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh(), nn.Linear(h, 1))

    def forward(self, x, t):
        return self.f(torch.cat([x, t], 1))


def heat_residual(u, n):
    x = torch.rand(n, 1, requires_grad=True)
    t = torch.rand(n, 1, requires_grad=True)
    y = u(x, t)
    one = torch.ones_like(y)
    ut, = torch.autograd.grad(y, t, one, create_graph=True)
    ux, = torch.autograd.grad(y, x, one, create_graph=True)
    uxx, = torch.autograd.grad(ux, x, one, create_graph=True)
    return (ut - ALPHA * uxx).pow(2).mean()


def initial_term(u, n):
    x = torch.rand(n, 1)
    return (u(x, torch.zeros_like(x)) - torch.sin(torch.pi * x)).pow(2).mean()


def wall_term(u, n):
    t = torch.rand(n, 1)
    zero = torch.zeros_like(t)
    return u(zero, t).pow(2).mean() + u(zero + 1, t).pow(2).mean()


class Balancer:
    """Weights the terms by their share of the running total, so that the worst one gets most attention."""

    def __init__(self, momentum=0.95):
        self.momentum = momentum
        self.level = {}

    def __call__(self, terms):
        for name, value in terms.items():
            old = self.level.get(name, value.detach())
            self.level[name] = self.momentum * old + (1 - self.momentum) * value
        whole = sum(self.level.values())
        return sum(value * self.level[name] / whole for name, value in terms.items())


def exact(x, t):
    return torch.exp(-ALPHA * torch.pi**2 * t) * torch.sin(torch.pi * x)


net = Mlp()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
balance = Balancer()
for it in range(400):
    terms = {"pde": heat_residual(net, 128), "initial": initial_term(net, 64), "wall": wall_term(net, 64)}
    loss = balance(terms)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 100 == 0:
        g = torch.linspace(0, 1, 30)
        X, T = [a.reshape(-1, 1) for a in torch.meshgrid(g, g, indexing="ij")]
        with torch.no_grad():
            err = (net(X, T) - exact(X, T)).abs().max()
        print(it, {k: round(v.item(), 5) for k, v in terms.items()}, "max error", round(err.item(), 4))
