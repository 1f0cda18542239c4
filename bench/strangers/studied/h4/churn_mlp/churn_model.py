import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def build_customers(n, seed):
    """income (per year), account balance, tenure (years), complaints, discount share, usage index"""
    rng = np.random.default_rng(seed)
    income = rng.lognormal(10.8, 0.4, n)
    balance = rng.normal(150_000, 60_000, n)
    tenure = rng.uniform(0, 12, n)
    complaints = rng.poisson(1.2, n)
    discount = rng.beta(2, 6, n)
    usage = rng.normal(0, 1, n)
    score = 1.1 * (complaints - 1.2) - 0.35 * (tenure - 6) - 5 * (discount - 0.25) - 0.9 * usage
    left = (score + rng.normal(0, 0.7, n) > 0).astype(np.float32)
    table = np.column_stack([income, balance, tenure, complaints, discount, usage])
    return table.astype(np.float32), left


class Standardizer:
    """z-scores with the statistics of the training table"""

    def fit(self, table):
        self.mean = table.mean()
        self.std = table.std()
        return self

    def transform(self, table):
        return (table - self.mean) / (self.std + 1e-8)


class ChurnMLP(nn.Module):
    def __init__(self, n_features, hidden):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features, hidden), nn.ReLU(),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 1))

    def forward(self, x):
        return self.layers(x).flatten()


def evaluate(model, loader):
    model.eval()
    n = hits = 0
    with torch.no_grad():
        for x, y in loader:
            hits += ((model(x) > 0) == y.bool()).sum().item()
            n += len(y)
    return hits / n


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--hidden", type=int, default=48)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--batch", type=int, default=64)
    return p.parse_args()


def main():
    opt = parse()
    torch.manual_seed(0)
    x_train, y_train = build_customers(2000, 1)
    x_val, y_val = build_customers(500, 2)
    scaler = Standardizer().fit(x_train)
    train = TensorDataset(torch.from_numpy(scaler.transform(x_train)), torch.from_numpy(y_train))
    val = TensorDataset(torch.from_numpy(scaler.transform(x_val)), torch.from_numpy(y_val))
    train_loader = DataLoader(train, batch_size=opt.batch, shuffle=True)
    val_loader = DataLoader(val, batch_size=256)

    model = ChurnMLP(x_train.shape[1], opt.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr)
    criterion = nn.BCEWithLogitsLoss()
    print(f"base rate {max(y_val.mean(), 1 - y_val.mean()):.3f}")
    for epoch in range(opt.epochs):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        print(f"epoch {epoch:2d} loss {total / len(train):.4f} val acc {evaluate(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
