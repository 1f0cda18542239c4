"""PINN for the damped oscillator u'' + 2 d u' + w^2 u = 0, Adam first and L-BFGS afterwards."""
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(123)
torch.set_default_dtype(torch.float64)
D, W = 1.0, 6.0


def exact(t):
    w = np.sqrt(W ** 2 - D ** 2)
    return np.exp(-D * t) * (np.cos(w * t) + D / w * np.sin(w * t))


class FCN(nn.Module):
    def __init__(self, width=24, depth=3):
        super().__init__()
        sizes = [1] + [width] * depth
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))
        self.out = nn.Linear(width, 1)

    def forward(self, t):
        for layer in self.hidden:
            t = torch.tanh(layer(t))
        return self.out(t)


def derivative(u, t):
    return torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]


def residual(net, t):
    u = net(t)
    du = derivative(u, t)
    return derivative(du, t) + 2 * D * du + W ** 2 * u


net = FCN()
t0 = torch.zeros(1, 1, requires_grad=True)
tc = torch.linspace(0, 1, 60).view(-1, 1).requires_grad_(True)


def objective():
    u0 = net(t0)
    ic = (u0 - 1).pow(2).sum() + 0.1 * derivative(u0, t0).pow(2).sum()
    return ic + 1e-3 * residual(net, tc).pow(2).mean()


def report(tag):
    t = torch.rand(200, 1)
    with torch.no_grad():
        err = np.abs(net(t).numpy() - exact(t.numpy())).max()
    # the residual needs derivatives with respect to time
    res = residual(net, t.requires_grad_(True)).detach().abs().max().item()
    print(f"{tag}: max error {err:.4f} max residual {res:.3f}")


adam = torch.optim.Adam(net.parameters(), lr=3e-3)
for i in range(600):
    adam.zero_grad()
    loss = objective()
    loss.backward()
    adam.step()
report("adam")

lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=400, history_size=50, line_search_fn="strong_wolfe",
                          tolerance_grad=1e-10, tolerance_change=1e-12)


def closure():
    lbfgs.zero_grad()
    loss = objective()
    loss.backward()
    return loss


lbfgs.step(closure)
report("lbfgs")
