"""Physics-informed network for u_t = k u_xx on [0,1]x[0,1], u(x,0)=sin(pi x), u(0,t)=u(1,t)=0.

Adam first, then L-BFGS with a strong-Wolfe line search. There is an exact solution to compare with:
u(x,t) = exp(-k pi^2 t) sin(pi x).
"""
import math
from functools import partial

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
K = 0.3


class Net(nn.Module):
    def __init__(self, width=24, depth=3):
        super().__init__()
        dims = [2] + [width] * depth + [1]
        self.lin = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))
        for m in self.lin:
            nn.init.xavier_normal_(m.weight)
            nn.init.zeros_(m.bias)

    def forward(self, x, t):
        h = torch.cat([x, t], 1)
        for m in self.lin[:-1]:
            h = torch.tanh(m(h))
        return self.lin[-1](h)


def d(out, wrt):
    return torch.autograd.grad(out, wrt, torch.ones_like(out), create_graph=True)[0]


def residual(net, x, t):
    x, t = x.requires_grad_(), t.requires_grad_()
    u = net(x, t)
    return d(u, t) - K * d(d(u, x), x)


def objective(net, inner, start, walls):
    pde = residual(net, *inner).square().mean()
    ic = (net(start, torch.zeros_like(start)) - torch.sin(math.pi * start)).square().mean()
    bc = net(*walls).square().mean()
    return pde + 10 * ic + 10 * bc


def collocation(gen, n=400):
    r = partial(torch.rand, generator=gen)
    inner = (r(n, 1), r(n, 1))
    start = r(100, 1)
    walls = (torch.randint(0, 2, (100, 1), generator=gen).double(), r(100, 1))
    return inner, start, walls


@torch.no_grad()
def rel_error(net, gen):
    x, t = torch.rand(1000, 1, generator=gen), torch.rand(1000, 1, generator=gen)
    exact = torch.exp(-K * math.pi ** 2 * t) * torch.sin(math.pi * x)
    return ((net(x, t) - exact).norm() / exact.norm()).item()


def main():
    torch.manual_seed(12)
    gen = torch.Generator().manual_seed(12)
    test_gen = torch.Generator().manual_seed(99)
    net = Net()

    adam = torch.optim.Adam(net.parameters(), lr=5e-3)
    for i in range(200):
        adam.zero_grad()
        loss = objective(net, *collocation(gen, 200))      # new points every time
        loss.backward()
        adam.step()
    print(f"after Adam   loss {loss.item():.2e}  error {rel_error(net, test_gen):.3f}")

    points = collocation(gen)                               # fixed points: L-BFGS needs a deterministic objective
    lbfgs = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=20, history_size=30, line_search_fn="strong_wolfe")

    def closure():
        lbfgs.zero_grad()
        value = objective(net, *points)
        value.backward()
        return value

    for outer in range(6):
        value = lbfgs.step(closure)
        print(f"L-BFGS {outer}    loss {value.item():.2e}  error {rel_error(net, test_gen):.3f}")


if __name__ == "__main__":
    main()
