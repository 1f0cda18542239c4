import argparse
import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from engine import run_epoch


class Forecaster(nn.Module):
    def __init__(self, hidden: int, horizon: int):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, num_layers=2, dropout=0.1, batch_first=True)
        self.out = nn.Linear(hidden, horizon)

    def forward(self, x):
        states, _ = self.rnn(x.unsqueeze(-1))
        return self.out(states[:, -1])


def make_series(n, rng):
    t = np.arange(n)
    daily = np.sin(2 * np.pi * t / 24)
    weekly = 0.4 * np.sin(2 * np.pi * t / 168)
    return (daily + weekly + 0.1 * rng.standard_normal(n)).astype(np.float32)


def windows(series, past, horizon):
    n = len(series) - past - horizon + 1
    x = np.stack([series[i:i + past] for i in range(n)])
    y = np.stack([series[i + past:i + past + horizon] for i in range(n)])
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--past", type=int, default=48)
    ap.add_argument("--horizon", type=int, default=6)
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--seed", type=int, default=7)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    series = make_series(1500, np.random.default_rng(args.seed))
    cut_a, cut_b = 1000, 1250
    mu, sd = series[:cut_a].mean(), series[:cut_a].std()
    series = (series - mu) / sd
    parts = {
        "train": windows(series[:cut_a], args.past, args.horizon),
        "valid": windows(series[cut_a:cut_b], args.past, args.horizon),
        "test": windows(series[cut_b:], args.past, args.horizon),
    }
    loaders = {k: DataLoader(d, batch_size=64, shuffle=k == "train") for k, d in parts.items()}

    model = Forecaster(32, args.horizon)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    crit = nn.SmoothL1Loss()
    best, best_state = float("inf"), None
    for epoch in range(args.epochs):
        tr = run_epoch(model, loaders["train"], crit, "train", opt)
        va = run_epoch(model, loaders["valid"], crit, "valid")
        print(f"epoch {epoch} train {tr['loss']:.4f} valid {va['loss']:.4f} mae {va['mae']:.4f}")
        if va["loss"] < best:
            best, best_state = va["loss"], copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    print("test", run_epoch(model, loaders["test"], crit, "test"))


if __name__ == "__main__":
    main()
