"""Autoencoder for pump vibration windows; the reconstruction error is the anomaly score."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from settings import BASE, EXPERIMENT, load

OPTIMIZERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


def windows(n, width, seed, faulty=False):
    g = torch.Generator().manual_seed(seed)
    t = torch.arange(width).float()
    f = 0.3 + 0.1 * torch.rand(n, 1, generator=g)
    x = torch.sin(f * t + 2 * math.pi * torch.rand(n, 1, generator=g))
    if faulty:
        x = x + 0.8 * torch.sin(2.5 * t + 2 * math.pi * torch.rand(n, 1, generator=g))
    return x + 0.05 * torch.randn(n, width, generator=g)


class AutoEncoder(nn.Module):
    def __init__(self, window, hidden, code):
        super().__init__()
        self.down = nn.Sequential(nn.Linear(window, hidden), nn.ELU(), nn.Linear(hidden, code))
        self.up = nn.Sequential(nn.Linear(code, hidden), nn.ELU(), nn.Linear(hidden, window))

    def forward(self, x):
        return self.up(self.down(x))


def main():
    cfg = load(BASE, EXPERIMENT)
    torch.manual_seed(cfg["seed"])
    width = cfg["data"]["window"]
    train = DataLoader(TensorDataset(windows(1600, width, 1)), batch_size=cfg["data"]["batch_size"], shuffle=True)
    healthy, broken = windows(300, width, 2), windows(300, width, 3, faulty=True)

    model = AutoEncoder(width, **cfg["model"])
    optim = dict(cfg["optim"])
    optimizer = OPTIMIZERS[optim.pop("name")](model.parameters(), **optim)

    for epoch in range(cfg["epochs"]):
        model.train()
        total = 0.0
        for (x,) in train:
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            a = (model(healthy) - healthy).pow(2).mean(1)
            b = (model(broken) - broken).pow(2).mean(1)
        auc = (b[:, None] > a[None, :]).float().mean()
        print(f"epoch {epoch} mse {total / len(train):.4f} healthy {a.mean():.4f} broken {b.mean():.4f} auc {auc:.3f}")


if __name__ == "__main__":
    main()
