"""Physics-informed network for u_t = k u_xx on [0,1]x[0,1], u(x,0)=sin(pi x), u(0,t)=u(1,t)=0."""
import math

import torch
import torch.nn as nn

torch.manual_seed(1234)
K = 0.1


class HeatNet(nn.Module):
    def __init__(self, width=40, depth=4, act=nn.Tanh):
        super().__init__()
        self.inp = nn.Linear(2, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(depth - 1)])
        self.out = nn.Linear(width, 1)
        self.act = act()
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_normal_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, x, t):
        h = self.inp(torch.cat([2 * x - 1, 2 * t - 1], dim=1))
        for layer in self.hidden:
            h = layer(h)
        # boundary values built in
        return x * (1 - x) * self.out(h)


def grad(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


def residual(net, x, t):
    x.requires_grad_(True)
    t.requires_grad_(True)
    u = net(x, t)
    return grad(u, t) - K * grad(grad(u, x), x)


def exact(x, t):
    return torch.exp(-K * math.pi ** 2 * t) * torch.sin(math.pi * x)


def relative_error(net, n=50):
    g = torch.linspace(0, 1, n)
    x, t = torch.meshgrid(g, g, indexing="ij")
    x, t = x.reshape(-1, 1), t.reshape(-1, 1)
    with torch.no_grad():
        return ((net(x, t) - exact(x, t)).norm() / exact(x, t).norm()).item()


net = HeatNet()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.999)

for it in range(1, 1201):
    x_f, t_f = torch.rand(256, 1), torch.rand(256, 1)
    x_0 = torch.rand(128, 1)
    t_0 = torch.zeros_like(x_0)

    loss_pde = residual(net, x_f, t_f).pow(2).mean()
    loss_ic = (net(x_0, t_0) - torch.sin(math.pi * x_0)).pow(2).mean()
    loss = loss_pde + 10.0 * loss_ic

    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    if it % 200 == 0:
        print(f"{it:5d}  pde {loss_pde.item():.2e}  ic {loss_ic.item():.2e}  rel.err {relative_error(net):.3f}")
