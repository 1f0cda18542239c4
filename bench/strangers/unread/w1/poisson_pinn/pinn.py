"""Physics informed network for u'' + pi^2 sin(pi x) = 0 on [-1, 1] with u(+-1) = 0 (double precision, LBFGS)."""
import math

import torch
from torch import nn

torch.set_default_dtype(torch.float64)


class Field(nn.Module):
    def __init__(self, width=20, depth=3):
        super().__init__()
        sizes = [1] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 1)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.xavier_normal_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.tanh(layer(x))
        return self.out(x)


def derivative(u, x):
    return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]


def residual(net, x):
    x = x.detach().requires_grad_(True)
    u = net(x)
    uxx = derivative(derivative(u, x), x)
    return uxx + math.pi ** 2 * torch.sin(math.pi * x)


def main():
    torch.manual_seed(0)
    net = Field()
    inner = 2 * torch.rand(100, 1) - 1
    wall = torch.tensor([[-1.0], [1.0]])
    opt = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=20, history_size=20, line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = residual(net, inner).square().mean() + 50 * net(wall).square().mean()
        loss.backward()
        return loss

    for outer in range(12):
        loss = opt.step(closure)
        if outer % 3 == 2:
            with torch.no_grad():
                grid = torch.linspace(-1, 1, 201).unsqueeze(1)
                err = (net(grid) - torch.sin(math.pi * grid)).abs().max()
            print(f"{outer + 1:2d} loss {loss.item():.3e} max error {err.item():.3e}")


if __name__ == "__main__":
    main()
