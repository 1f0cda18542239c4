"""Next-day river level from gauge records of different lengths."""
import json
import logging

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CONFIG = json.loads("""{"n_train": 300, "n_val": 80, "max_days": 60, "hidden": 32, "lr": 0.005, "epochs": 6, "batch": 30}""")
log = logging.getLogger("river")


def simulate_gauge(rng, max_days):
    days = rng.integers(8, max_days)
    rain = rng.gamma(0.6, 4.0, days + 1)
    level = np.zeros(days + 1)
    level[0] = rng.uniform(2, 6)
    for t in range(days):
        level[t + 1] = 0.9 * level[t] + 0.08 * rain[t] + 0.3 + rng.normal(0, 0.05)
    return np.stack([level[:-1], rain[:-1]], 1).astype(np.float32), level[1:].astype(np.float32)


class Gauges(Dataset):
    def __init__(self, n, max_days, seed):
        rng = np.random.default_rng(seed)
        self.x = np.zeros((n, max_days, 2), np.float32)
        self.y = np.zeros((n, max_days), np.float32)
        for i in range(n):
            x, y = simulate_gauge(rng, max_days)
            self.x[i, : len(x)], self.y[i, : len(y)] = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i]), torch.from_numpy(self.y[i])


class Standardizer:
    def fit(self, ds):
        filled = ds.y > 0
        self.mx = torch.tensor(ds.x[filled].mean(0))
        self.sx = torch.tensor(ds.x[filled].std(0))
        self.my, self.sy = float(ds.y[filled].mean()), float(ds.y[filled].std())
        return self

    def collate(self, rows):
        x, y = (torch.stack(t) for t in zip(*rows))
        return (x - self.mx) / self.sx, (y - self.my) / self.sy

    def levels(self, z):
        return z * self.sy + self.my


class LevelRNN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.rnn = nn.GRU(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0]).squeeze(-1)


def masked_mse(pred, target):
    valid = (target != 0).float()
    return ((pred - target) ** 2 * valid).sum() / valid.sum()


def run(cfg):
    torch.manual_seed(0)
    train, val = Gauges(cfg["n_train"], cfg["max_days"], 0), Gauges(cfg["n_val"], cfg["max_days"], 1)
    scale = Standardizer().fit(train)
    net = LevelRNN(cfg["hidden"])
    opt = torch.optim.Adam(net.parameters(), lr=cfg["lr"])
    loader = DataLoader(train, cfg["batch"], shuffle=True, collate_fn=scale.collate)
    for epoch in range(cfg["epochs"]):
        net.train()
        losses = []
        for x, y in loader:
            loss = masked_mse(net(x), y)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            losses.append(loss.item())
        net.eval()
        with torch.no_grad():
            x, y = scale.collate([val[i] for i in range(len(val))])
            real = torch.from_numpy(val.y) > 0
            err = (scale.levels(net(x)) - torch.from_numpy(val.y))[real]
        log.info("epoch %d train mse %.4f val rmse %.4f m", epoch, np.mean(losses), err.pow(2).mean().sqrt().item())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    run(CONFIG)
