# PINN for u'' + u = 0 on [0, 2*pi], u(0)=0, u'(0)=1  ->  u = sin(t).  Adam warm start, then L-BFGS.
import math
import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


u = nn.Sequential(nn.Linear(1, 24), Sine(), nn.Linear(24, 24), Sine(), nn.Linear(24, 1))

t_col = torch.linspace(0, 2 * math.pi, 64).unsqueeze(1).requires_grad_(True)
t0 = torch.zeros(1, 1, requires_grad=True)
t_test = (torch.rand(200, 1) * 2 * math.pi)


def d(y, t):
    return torch.autograd.grad(y, t, torch.ones_like(y), create_graph=True)[0]


def physics():
    y = u(t_col)
    res = d(d(y, t_col), t_col) + y
    y0 = u(t0)
    return res.pow(2).mean() + 10 * (y0.pow(2) + (d(y0, t0) - 1).pow(2)).squeeze()


def report(tag):
    with torch.no_grad():
        err = (u(t_test) - torch.sin(t_test)).abs().max().item()
    print(f"{tag:12s} max error {err:.2e}")


warm = torch.optim.Adam(u.parameters(), lr=2e-3)
for _ in range(200):
    warm.zero_grad()
    loss = physics()
    loss.backward()
    warm.step()
report("adam")

fine = torch.optim.LBFGS(u.parameters(), lr=1.0, max_iter=20, history_size=30, line_search_fn="strong_wolfe")


def closure():
    fine.zero_grad()
    value = physics()
    value.backward()
    return value


for k in range(5):
    last = fine.step(closure)
    report(f"lbfgs {k} ({last.item():.1e})")
