"""Physics-informed net for u_t = k u_xx on [0,1]^2, u(x,0)=sin(pi x), u(0,t)=u(1,t)=0. Adam, then L-BFGS.

There is no data to hold out: training uses the equation, the check uses the closed-form solution on a grid.
"""
import math

import torch
from torch import nn

torch.manual_seed(44)
torch.set_default_dtype(torch.float64)
K = 0.3


class Sine(nn.Module):
    def forward(self, z):
        return torch.sin(z)


class Field(nn.Module):
    def __init__(self, h=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, h), Sine(), nn.Linear(h, h), Sine(), nn.Linear(h, 1))

    def forward(self, x, t):
        raw = self.net(torch.cat([x, t], 1))
        # hard constraints: the ansatz satisfies boundary and initial conditions by construction
        return torch.sin(math.pi * x) + t * x * (1 - x) * raw


def d(out, inp):
    return torch.autograd.grad(out, inp, torch.ones_like(out), create_graph=True)[0]


def residual(u, pts):
    x = pts[:, :1].clone().requires_grad_()
    t = pts[:, 1:].clone().requires_grad_()
    val = u(x, t)
    return d(val, t) - K * d(d(val, x), x)


def grid_error(u, n=25):
    s = torch.linspace(0, 1, n)
    x, t = (m.reshape(-1, 1) for m in torch.meshgrid(s, s, indexing="ij"))
    with torch.no_grad():
        exact = torch.exp(-K * math.pi ** 2 * t) * torch.sin(math.pi * x)
        return (u(x, t) - exact).abs().max().item()


u = Field()
print(f"start: max error {grid_error(u):.4f}")

adam = torch.optim.Adam(u.parameters(), lr=3e-3)
for _ in range(150):
    adam.zero_grad()
    loss = residual(u, torch.rand(128, 2)).pow(2).mean()
    loss.backward()
    adam.step()
print(f"adam : residual {loss.item():.2e} max error {grid_error(u):.4f}")

colloc = torch.quasirandom.SobolEngine(2, scramble=True, seed=1).draw(256).double()
lbfgs = torch.optim.LBFGS(u.parameters(), max_iter=20, history_size=20, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    value = residual(u, colloc).pow(2).mean()
    value.backward()
    return value


for _ in range(4):
    value = lbfgs.step(closure)
print(f"lbfgs: residual {value.item():.2e} max error {grid_error(u):.5f}")
