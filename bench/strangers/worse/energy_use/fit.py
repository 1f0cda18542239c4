"""Yearly electricity use of a household (kWh) from survey answers."""
import argparse

import numpy as np
import torch
import torch.nn as nn


def survey(n, seed=9):
    rng = np.random.default_rng(seed)
    persons = rng.integers(1, 6, n)
    area = rng.uniform(30, 200, n)
    heat_pump = rng.integers(0, 2, n)
    car = rng.integers(0, 2, n)
    insulation = rng.uniform(0, 1, n)
    climate = rng.normal(0, 1, n)
    kwh = (6000 + 3200 * persons + heat_pump * area * (110 - 60 * insulation) * (1 + 0.2 * climate)
           + 9000 * car + 500 * rng.normal(size=n))
    x = np.stack([persons, area, heat_pump, car, insulation, climate], 1)
    x = (x - x.mean(0)) / x.std(0)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(kwh, dtype=torch.float32)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


def r2(pred, y):
    return 1 - ((pred - y) ** 2).sum().item() / ((y - y.mean()) ** 2).sum().item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--epochs", type=int, default=40)
    ap.add_argument("--lr", type=float, default=1e-3)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    x, y = survey(2500)
    xt, yt, xv, yv = x[:2000], y[:2000], x[2000:], y[2000:]
    net = Net()
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        tot = 0.0
        for idx in torch.randperm(len(xt)).split(32):
            loss = ((net(xt[idx]) - yt[idx]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            tot += loss.item() * len(idx)
        with torch.no_grad():
            pv = net(xv)
        print(f"epoch {epoch + 1:3d} train_mse {tot / len(xt):.5g} "
              f"val_rmse {((pv - yv) ** 2).mean().sqrt().item():.5g} val_r2 {r2(pv, yv):.4f}")


if __name__ == "__main__":
    main()
