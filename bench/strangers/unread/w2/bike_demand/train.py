"""Hourly bike demand with a gaussian head; predictive spread from Monte-Carlo dropout at prediction time."""
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def demand(n, seed):
    rng = np.random.default_rng(seed)
    hour, temp, rain = rng.integers(0, 24, n), rng.normal(14, 8, n), rng.random(n) < 0.2
    rush = np.exp(-((hour - 8) ** 2) / 4) + 1.2 * np.exp(-((hour - 17.5) ** 2) / 6)
    mean = 20 + 120 * rush + 2.0 * temp - 30 * rain * rush
    y = mean + rng.normal(size=n) * (4 + 15 * rush)
    x = np.stack([np.sin(hour * np.pi / 12), np.cos(hour * np.pi / 12), np.sin(hour * np.pi / 6),
                  np.cos(hour * np.pi / 6), temp, rain], 1)
    return x.astype(np.float32), y.astype(np.float32)[:, None]


class Standardizer:
    def fit(self, a):
        self.m, self.s = a.mean(0), a.std(0)
        return self

    def apply(self, a):
        return torch.from_numpy((a - self.m) / self.s)


class GaussianMLP(nn.Module):
    def __init__(self, p=0.02):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(6, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(p), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(p))
        self.mu, self.raw = nn.Linear(64, 1), nn.Linear(64, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mu(h), nn.functional.softplus(self.raw(h)) + 1e-4


@contextmanager
def dropout_only(model):
    """eval mode, except that dropout keeps sampling; restores the previous mode of every module."""
    modes = {m: m.training for m in model.modules()}
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()
    try:
        yield
    finally:
        for m, mode in modes.items():
            m.training = mode


@torch.no_grad()
def mc_predict(model, x, draws=30):
    with dropout_only(model):
        mus, variances = zip(*[model(x) for _ in range(draws)])
    mus, variances = torch.stack(mus), torch.stack(variances)
    return mus.mean(0), (variances.mean(0) + mus.var(0)).sqrt()


def main():
    torch.manual_seed(0)
    (xt, yt), (xv, yv) = demand(1600, 1), demand(400, 2)
    fx, fy = Standardizer().fit(xt), Standardizer().fit(yt)
    loader = DataLoader(TensorDataset(fx.apply(xt), fy.apply(yt)), batch_size=64, shuffle=True)
    x_val, y_val = fx.apply(xv), fy.apply(yv)
    model, nll = GaussianMLP(), nn.GaussianNLLLoss()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    model.train()
    for epoch in range(12):
        for x, y in loader:
            mu, var = model(x)
            loss = nll(mu, y, var)
            opt.zero_grad()
            loss.backward()
            opt.step()
        mu, sd = mc_predict(model, x_val)
        inside = ((y_val - mu).abs() < 1.645 * sd).float().mean().item()
        mae = (mu - y_val).abs().mean().item() * float(fy.s[0])
        print(f"epoch {epoch:2d} nll {loss.item():.3f} MAE {mae:.2f} bikes, 90% interval covers {inside:.2f}")


if __name__ == "__main__":
    main()
