"""Tide gauge regression with Monte-Carlo dropout intervals."""
import argparse
import logging

import numpy as np
import torch
from torch import nn

log = logging.getLogger("tides")


class TideNet(nn.Module):
    def __init__(self, n_in, width, p):
        super().__init__()
        self.norm = nn.BatchNorm1d(n_in)
        self.layers = nn.Sequential(
            nn.Linear(n_in, width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(self.norm(x)).squeeze(1)


def tide_features(hours):
    periods = [12.42, 12.0, 25.82, 23.93]
    cols = [f(2 * np.pi * hours / p) for p in periods for f in (np.sin, np.cos)]
    return np.stack(cols, axis=1).astype(np.float32)


def simulate(n, seed):
    rng = np.random.default_rng(seed)
    hours = rng.uniform(0, 24 * 60, n)
    f = tide_features(hours)
    level = 1.2 * f[:, 0] + 0.4 * f[:, 3] + 0.3 * f[:, 4] * f[:, 0] + 0.15 * rng.standard_normal(n)
    return torch.from_numpy(f), torch.from_numpy(level.astype(np.float32))


def dropout_on(model):
    """Everything in evaluation mode except the dropout layers."""
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()


@torch.no_grad()
def mc_predict(model, x, passes):
    dropout_on(model)
    draws = torch.stack([model(x) for _ in range(passes)])
    return draws.mean(0), draws.std(0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=12)
    ap.add_argument("--passes", type=int, default=60)
    ap.add_argument("--dropout", type=float, default=0.1)
    a = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(0)

    x, y = simulate(1500, 1)
    xt, yt = simulate(400, 2)
    model = TideNet(x.shape[1], 64, a.dropout)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
    noise = 0.15
    for epoch in range(a.epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(50):
            loss = nn.functional.mse_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        mean, spread = mc_predict(model, xt, a.passes)
        total = (spread ** 2 + noise ** 2).sqrt()
        inside = ((yt - mean).abs() < 1.96 * total).float().mean().item()
        rmse = (mean - yt).square().mean().sqrt().item()
        if epoch % 3 == 2:
            log.info("epoch %2d  RMSE %.3f  95%% interval covers %.3f  mean spread %.3f", epoch, rmse, inside, spread.mean())


if __name__ == "__main__":
    main()
