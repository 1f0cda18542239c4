"""Network for x(t) of a damped oscillator from a few measurements and the equation of motion."""
import math

import torch
from torch import nn

torch.set_default_dtype(torch.float64)
DELTA, OMEGA0 = 0.4, 4.0


def exact(t):
    w = math.sqrt(OMEGA0**2 - DELTA**2)
    phi = math.atan(-DELTA / w)
    return torch.exp(-DELTA * t) * torch.cos(phi + w * t) / math.cos(phi)


class Trial(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, t):
        return self.net(2 * t - 1)


def residual(model, t):
    t = t.clone().requires_grad_(True)
    x = model(t)
    (dx,) = torch.autograd.grad(x.sum(), t, create_graph=True)
    (ddx,) = torch.autograd.grad(dx.sum(), t, create_graph=True)
    return (ddx + 2 * DELTA * dx + OMEGA0**2 * x) / OMEGA0**2


def main():
    torch.manual_seed(4)
    model = Trial()
    t_meas = torch.tensor([[0.0], [0.1], [0.25], [0.4]])
    x_meas = exact(t_meas)
    t_phys = torch.linspace(0, 1, 40).unsqueeze(1)
    t_test = torch.rand(200, 1, generator=torch.Generator().manual_seed(1))
    opt = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=25, history_size=30, line_search_fn="strong_wolfe")

    def closure():
        opt.zero_grad()
        loss = (model(t_meas) - x_meas).square().mean() + 0.1 * residual(model, t_phys).square().mean()
        loss.backward()
        return loss

    for outer in range(6):
        loss = opt.step(closure)
        if outer % 2 == 1:
            with torch.no_grad():
                err = (model(t_test) - exact(t_test)).abs().max()
            print(f"{outer + 1:3d} loss {loss.item():.3e}  max error {err.item():.3e}")


if __name__ == "__main__":
    main()
