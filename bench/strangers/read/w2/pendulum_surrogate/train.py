"""Neural surrogate for the damped pendulum: (theta0, omega0, damping, t) -> theta(t)."""
import copy
import itertools

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
np.random.seed(7)


def simulate(n, steps=80, t_max=4.0):
    theta = np.random.uniform(-1.5, 1.5, n)
    omega = np.random.uniform(-1.0, 1.0, n)
    damping = np.random.uniform(0.0, 0.6, n)
    stop = np.random.uniform(0.1, t_max, n)
    th, om = theta.copy(), omega.copy()
    dt = stop / steps
    for _ in range(steps):
        om = om + dt * (-np.sin(th) - damping * om)
        th = th + dt * om
    x = np.stack([theta, omega, damping, stop], axis=1).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(th.astype(np.float32)).unsqueeze(1)


class Surrogate(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(4, width), nn.Tanh(),
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.body(x)


def range_test(model, loader, loss_fn, low=1e-6, high=10.0, num=120):
    """Sweep the learning rate on a throw-away copy and return a suggestion."""
    probe = copy.deepcopy(model)
    opt = torch.optim.Adam(probe.parameters(), lr=low)
    rates = np.geomspace(low, high, num)
    smooth, gains = None, []
    batches = itertools.cycle(loader)
    for rate in rates:
        for group in opt.param_groups:
            group["lr"] = rate
        x, y = next(batches)
        opt.zero_grad()
        loss = loss_fn(probe(x), y)
        loss.backward()
        opt.step()
        if smooth is None:
            first = smooth = loss.item()
        smooth = 0.8 * smooth + 0.2 * loss.item()
        gains.append(first - smooth)
    turning_point = int(np.argmin(gains))
    return float(rates[turning_point] / 10)


def evaluate(model, loader, loss_fn):
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            total += loss_fn(model(x), y).item() * len(x)
            count += len(x)
    return total / count


x_train, y_train = simulate(2048)
x_val, y_val = simulate(512)
mean, std = x_train.mean(0), x_train.std(0)
x_train, x_val = (x_train - mean) / std, (x_val - mean) / std

train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=256)

model = Surrogate()
loss_fn = nn.MSELoss()
rate = range_test(model, train_loader, loss_fn)
print(f"suggested rate {rate:.2e}")
optimizer = torch.optim.Adam(model.parameters(), lr=rate)

for epoch in range(10):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(x)
    print(f"epoch {epoch:2d} train {running / len(x_train):.4f} val {evaluate(model, val_loader, loss_fn):.4f}")
