# Electricity demand: predict the 10/50/90 % quantile of the next hour from the last 24 hours.
import numpy as np
import torch
from torch import nn

QUANTILES = [0.1, 0.5, 0.9]
LOOKBACK = 24


def simulate(hours=1500, seed=8):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    level = 10 + 3 * np.sin(2 * np.pi * t / 24) + 1.5 * np.sin(2 * np.pi * t / 168)
    return level + rng.gamma(2.0, 0.5, hours)


def windows(series):
    x = np.stack([series[i:i + LOOKBACK] for i in range(len(series) - LOOKBACK)])
    y = series[LOOKBACK:]
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)


def pinball(pred, target, q):
    err = target - pred
    return torch.maximum(q * err, (q - 1) * err).mean()


class QuantileLoss(nn.Module):
    def __init__(self, quantiles, weights=None):
        super().__init__()
        self.quantiles = quantiles
        self.weights = weights or [1.0] * len(quantiles)

    def forward(self, pred, target):
        per_quantile = [
            w * pinball(pred[:, i], target, q)
            for i, (q, w) in enumerate(zip(self.quantiles, self.weights))
        ]
        return torch.tensor(per_quantile, requires_grad=True).sum()


class DemandNet(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, len(QUANTILES))

    def forward(self, x):
        _, h = self.gru(x.unsqueeze(-1))
        return self.head(h[-1])


def coverage(net, x, y):
    net.eval()
    with torch.no_grad():
        p = net(x)
    return ((y >= p[:, 0]) & (y <= p[:, 2])).float().mean().item()


def main():
    torch.manual_seed(8)
    series = simulate()
    cut = int(len(series) * 0.8)
    mean, std = series[:cut].mean(), series[:cut].std()
    norm = (series - mean) / std
    x_train, y_train = windows(norm[:cut])
    x_test, y_test = windows(norm[cut:])

    net = DemandNet()
    loss_fn = QuantileLoss(QUANTILES)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

    for epoch in range(1, 6):
        net.train()
        order = torch.randperm(len(x_train))
        total = 0.0
        for chunk in order.split(64):
            optimizer.zero_grad()
            loss = loss_fn(net(x_train[chunk]), y_train[chunk])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(chunk)
        print(f"Epoch {epoch}: pinball {total / len(x_train):.4f}, 80% interval covers {coverage(net, x_test, y_test):.2%}")


if __name__ == "__main__":
    main()
