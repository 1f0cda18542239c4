"""Regression of stiffness and yield from composition; the error is wanted in physical units."""
import numpy as np
import torch
from torch import nn

from scaling import Standardizer

rng = np.random.default_rng(4)


def alloys(n):
    comp = rng.dirichlet(np.ones(6), size=n)
    moduli = np.array([210.0, 70.0, 115.0, 180.0, 45.0, 330.0])
    stiffness = comp @ moduli + 30 * comp[:, 0] * comp[:, 5]
    strength = 0.002 * stiffness ** 2 + 90 * comp[:, 1] * comp[:, 2] + 2 * rng.standard_normal(n)
    return comp.astype(np.float32), np.stack([stiffness, strength], 1).astype(np.float32)


class Regressor(nn.Module):
    def __init__(self, d_in, d_out, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(d_in, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, d_out),
        )

    def forward(self, x):
        return self.layers(x)

    def penalty(self):
        return sum(m.weight.square().sum() for m in self.layers if isinstance(m, nn.Linear))


x_train, y_train = alloys(800)
x_val, y_val = alloys(200)
x_scale, y_scale = Standardizer().fit(x_train), Standardizer().fit(y_train)
xt = torch.from_numpy(x_scale.transform(x_train)).float()
xv = torch.from_numpy(x_scale.transform(x_val)).float()
yt, yv = torch.from_numpy(y_train), torch.from_numpy(y_val)
unit = torch.tensor([100.0, 50.0])  # GPa, MPa: typical magnitudes

torch.manual_seed(4)
model = Regressor(6, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
huber = nn.HuberLoss(delta=1.0)

for epoch in range(30):
    model.train()
    running = 0.0
    order = torch.randperm(len(xt))
    for idx in order.split(64):
        physical = y_scale.inverse(model(xt[idx]))
        fit = huber(physical / unit, yt[idx] / unit)
        objective = fit + 1e-4 * model.penalty()
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
        running += fit.item() * len(idx)
    if epoch % 5 == 4:
        model.eval()
        with torch.no_grad():
            mae = (y_scale.inverse(model(xv)) - yv).abs().mean(0)
        print(f"epoch {epoch + 1} train {running / len(xt):.4f} MAE {mae[0]:.2f} GPa {mae[1]:.2f} MPa")
