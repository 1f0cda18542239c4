"""Aqueous solubility from molecular descriptors (synthetic stand-in for the lab data)."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


def descriptors(n, seed, dim=24):
    g = torch.Generator().manual_seed(seed)
    w = torch.randn(dim, 6, generator=torch.Generator().manual_seed(0)) / dim ** 0.5
    x = torch.randn(n, dim, generator=g)
    y = torch.tanh(x @ w).sum(1) + 0.1 * torch.randn(n, generator=g)
    return TensorDataset(x, y)


class Jittered(Dataset):
    """Adds measurement noise of the descriptor software to every draw."""

    def __init__(self, base, sigma):
        self.base, self.sigma = base, sigma

    def __len__(self):
        return len(self.base)

    def __getitem__(self, i):
        x, y = self.base[i]
        return x + self.sigma * torch.randn_like(x), y


class LongEpoch(Jittered):
    """Shows each molecule `times` times per epoch, the set is too small for a useful epoch otherwise."""

    def __init__(self, base, sigma, times):
        super().__init__(base, sigma)
        self.times = times

    def __getitem__(self, i):
        return super().__getitem__(i // self.times)


class Regressor(nn.Module):
    def __init__(self, dim=24, hidden=96):
        super().__init__()
        self.inp = nn.Linear(dim, hidden)
        self.hid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        h = nn.functional.silu(self.inp(x))
        h = h + nn.functional.silu(self.hid(h))
        return self.out(h)[:, 0]


def rmse(model, loader):
    model.eval()
    se = n = 0
    with torch.no_grad():
        for x, y in loader:
            se += (model(x) - y).square().sum().item()
            n += len(y)
    return (se / n) ** 0.5


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--times", type=int, default=8)
    ap.add_argument("--sigma", type=float, default=0.02)
    ap.add_argument("--epochs", type=int, default=25)
    ap.add_argument("--lr", type=float, default=2e-3)
    a = ap.parse_args()
    torch.manual_seed(1)
    train = LongEpoch(descriptors(640, 1), a.sigma, a.times)
    loader = DataLoader(train, batch_size=32, shuffle=True)
    holdout = DataLoader(descriptors(400, 2), batch_size=200)
    model = Regressor()
    optimizer = torch.optim.AdamW(model.parameters(), lr=a.lr, weight_decay=1e-3)
    for epoch in range(a.epochs):
        model.train()
        se = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            se += loss.item() * len(y)
        if epoch % 4 == 0:
            print(f"epoch {epoch:2d}  train rmse {(se / len(train)) ** 0.5:.3f}  holdout rmse {rmse(model, holdout):.3f}")


if __name__ == "__main__":
    main()
