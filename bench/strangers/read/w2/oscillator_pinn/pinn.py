"""PINN for u'' + 0.4 u' + 4 u = 0, u(0)=1, u'(0)=0; Adam warm start, then LBFGS."""
import math

import torch
from torch import nn

torch.manual_seed(1)
torch.set_default_dtype(torch.float64)


class Field(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, t):
        return self.net(t / 3.0 - 1.0)


def derivative(u, t):
    return torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]


def residual_loss(model, t):
    t = t.clone().requires_grad_(True)
    u = model(t)
    du = derivative(u, t)
    ddu = derivative(du, t)
    ode = (ddu + 0.4 * du + 4 * u).pow(2).mean()
    t0 = torch.zeros(1, 1, requires_grad=True)
    u0 = model(t0)
    du0 = derivative(u0, t0)
    return ode + 20 * (u0 - 1).pow(2).sum() + 20 * du0.pow(2).sum()


def exact(t):
    w = math.sqrt(4 - 0.04)
    return torch.exp(-0.2 * t) * (torch.cos(w * t) + 0.2 / w * torch.sin(w * t))


model = Field()
points = torch.linspace(0, 6, 120).unsqueeze(1)
grid = torch.linspace(0, 6, 301).unsqueeze(1)

adam = torch.optim.Adam(model.parameters(), lr=5e-3)
for i in range(400):
    adam.zero_grad()
    loss = residual_loss(model, points)
    loss.backward()
    adam.step()
print(f"after adam  residual {loss.item():.4e}")

lbfgs = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=25, history_size=30, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    value = residual_loss(model, points)
    value.backward()
    return value


for outer in range(20):
    loss = lbfgs.step(closure)
    if outer % 5 == 4:
        with torch.no_grad():
            err = (model(grid) - exact(grid)).abs().max().item()
        print(f"lbfgs {outer + 1:2d} residual {loss.item():.4e} max error {err:.4e}")
