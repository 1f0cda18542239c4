"""Physics-informed net for the damped oscillator u'' + 2 d u' + w^2 u = 0, u(0)=1, u'(0)=0.

Also identifies the damping d from a few noisy measurements (inverse problem)."""
import math

import torch
import torch.nn as nn

torch.manual_seed(0)
D_TRUE, W = 0.4, 3.0


def exact(t):
    wd = math.sqrt(W ** 2 - D_TRUE ** 2)
    return torch.exp(-D_TRUE * t) * (torch.cos(wd * t) + D_TRUE / wd * torch.sin(wd * t))


class Net(nn.Module):
    def __init__(self, h=32):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(1, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh(), nn.Linear(h, 1))
        self.damping = nn.Parameter(torch.tensor(0.0))
        self.register_buffer("omega", torch.tensor(W))

    def forward(self, t):
        return self.f(t)


def derivative(u, t):
    return torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]


net = Net()
t_col = torch.linspace(0, 2, 60).unsqueeze(1).requires_grad_(True)
t_obs = torch.linspace(0.1, 2.0, 12).unsqueeze(1)
u_obs = exact(t_obs) + 0.01 * torch.randn_like(t_obs)
t0 = torch.zeros(1, 1, requires_grad=True)


def total_loss():
    u = net(t_col)
    du = derivative(u, t_col)
    ddu = derivative(du, t_col)
    residual = ddu + 2 * net.damping * du + net.omega ** 2 * u
    u0 = net(t0)
    ic = (u0 - 1).pow(2).mean() + derivative(u0, t0).pow(2).mean()
    return 1e-2 * residual.pow(2).mean() + ic + (net(t_obs) - u_obs).pow(2).mean()


adam = torch.optim.Adam([{"params": net.f.parameters()}, {"params": [net.damping], "lr": 1e-2}], lr=3e-3)
for it in range(500):
    adam.zero_grad()
    loss = total_loss()
    loss.backward()
    adam.step()
print(f"adam   loss {loss.item():.6f} damping {net.damping.item():.3f}")

lbfgs = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=150, history_size=20, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    loss = total_loss()
    loss.backward()
    return loss


lbfgs.step(closure)
with torch.no_grad():
    t = torch.linspace(0, 2, 200).unsqueeze(1)
    err = (net(t) - exact(t)).abs().max().item()
print(f"lbfgs  loss {total_loss().item():.6f} damping {net.damping.item():.3f} max error {err:.4f}")
