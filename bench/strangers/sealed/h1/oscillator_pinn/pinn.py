"""Damped oscillator u'' + 0.8 u' + 9 u = 0, u(0)=1, u'(0)=0, with a physics-informed network."""
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
C, K = 0.8, 9.0


def exact(t):
    w = np.sqrt(K - C * C / 4)
    return np.exp(-C / 2 * t) * (np.cos(w * t) + C / (2 * w) * np.sin(w * t))


class PINN(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, t):
        # the initial conditions hold by construction
        return 1.0 + t ** 2 * self.f(t)


def residual(model, t):
    t = t.requires_grad_(True)
    u = model(t)
    du, = torch.autograd.grad(u.sum(), t, create_graph=True)
    ddu, = torch.autograd.grad(du.sum(), t, create_graph=True)
    return ddu + C * du + K * u


model = PINN()
points = torch.linspace(0, 2.5, 60)[:, None]
optimizer = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=40, history_size=20, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = residual(model, points.clone()).pow(2).mean()
    loss.backward()
    return loss


grid = np.linspace(0, 2.5, 200)
for outer in range(8):
    loss = optimizer.step(closure)
    with torch.no_grad():
        err = np.abs(model(torch.tensor(grid)[:, None]).numpy()[:, 0] - exact(grid)).max()
    print(f"round {outer}: residual {loss.item():.3e}  max error {err:.4f}")
