"""Physics-informed network for u_t = u_xx on [0,1]x[0,0.2], u(x,0)=sin(pi x), u=0 at the walls."""
import math

import torch
from torch import nn
from torch.autograd import grad

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
T_END = 0.2


class Ansatz(nn.Module):
    """The trial function fulfils the initial and the boundary condition by construction."""

    def __init__(self, width=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x, t):
        free = self.body(torch.cat([2 * x - 1, 2 * t / T_END - 1], dim=1))
        return torch.sin(math.pi * x) + t * x * (1 - x) * free * 20


def residual(net, x, t):
    x, t = x.requires_grad_(), t.requires_grad_()
    u = net(x, t)
    ones = torch.ones_like(u)
    u_t, u_x = grad(u, (t, x), ones, create_graph=True)
    (u_xx,) = grad(u_x, x, ones, create_graph=True)
    return u_t - u_xx


def exact(x, t):
    return torch.sin(math.pi * x) * torch.exp(-math.pi ** 2 * t)


def error(net):
    x, t = torch.meshgrid(torch.linspace(0, 1, 41), torch.linspace(0, T_END, 21), indexing="ij")
    x, t = x.reshape(-1, 1), t.reshape(-1, 1)
    with torch.no_grad():
        return ((net(x, t) - exact(x, t)).norm() / exact(x, t).norm()).item()


def main():
    net = Ansatz()
    adam = torch.optim.Adam(net.parameters(), lr=5e-3)
    print(f"start: relative error {error(net):.4f}")
    for it in range(1, 301):
        adam.zero_grad()
        loss = residual(net, torch.rand(256, 1), T_END * torch.rand(256, 1)).square().mean()
        loss.backward()
        adam.step()
        if it % 100 == 0:
            print(f"adam {it}: residual {loss.item():.3e}, relative error {error(net):.4f}")

    xs, ts = torch.rand(400, 1), T_END * torch.rand(400, 1)
    lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=60, line_search_fn="strong_wolfe")

    def closure():
        lbfgs.zero_grad()
        value = residual(net, xs, ts).square().mean()
        value.backward()
        return value

    lbfgs.step(closure)
    print(f"lbfgs: residual {closure().item():.3e}, relative error {error(net):.4f}")


if __name__ == "__main__":
    main()
