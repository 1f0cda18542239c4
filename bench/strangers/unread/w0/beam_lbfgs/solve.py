import argparse

import torch
from torch import nn


class Deflection(nn.Module):
    """Ansatz that satisfies u(0) = u(1) = 0 by construction."""

    def __init__(self, width):
        super().__init__()
        self.hidden = nn.Linear(1, width)
        self.middle = nn.Linear(width, width)
        self.out = nn.Linear(width, 1, bias=False)

    def forward(self, x):
        h = torch.tanh(self.hidden(2 * x - 1))
        return x * (1 - x) * self.out(torch.tanh(self.middle(h)))


def residual(model, x):
    x = x.clone().requires_grad_(True)
    u = model(x)
    (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    (ddu,) = torch.autograd.grad(du.sum(), x, create_graph=True)
    return -ddu - torch.pi**2 * torch.sin(torch.pi * x)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--points", type=int, default=64)
    p.add_argument("--width", type=int, default=20)
    p.add_argument("--rounds", type=int, default=12)
    a = p.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    model = Deflection(a.width)
    x = torch.linspace(0, 1, a.points)[:, None]
    check = torch.rand(200, 1)
    opt = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=20, history_size=20, tolerance_grad=1e-12,
                            tolerance_change=1e-14, line_search_fn="strong_wolfe")
    calls = 0

    def closure():
        nonlocal calls
        calls += 1
        opt.zero_grad()
        loss = residual(model, x).square().mean()
        loss.backward()
        return loss

    for r in range(a.rounds):
        loss = opt.step(closure)
        with torch.no_grad():
            err = (model(check) - torch.sin(torch.pi * check)).abs().max()
        print(f"round {r:2d} calls {calls:4d} residual {loss.item():.3e} max error {err.item():.3e}")
        if loss.item() < 1e-10:
            break


if __name__ == "__main__":
    main()
