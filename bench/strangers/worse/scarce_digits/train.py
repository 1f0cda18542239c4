"""Digits from only 150 labelled images, with a small convolutional network."""
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
import torch.nn.functional as F


@dataclass
class Config:
    labelled: int = 150
    lr: float = 8e-3
    weight_decay: float = 1e-2
    dropout: float = 0.5
    batch_size: int = 16
    epochs: int = 60
    seed: int = 0


class ConvNet(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.c1 = nn.Conv2d(1, 16, 3, padding=1)
        self.b1 = nn.BatchNorm2d(16)
        self.c2 = nn.Conv2d(16, 32, 3, padding=1)
        self.b2 = nn.BatchNorm2d(32)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(32 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.b1(self.c1(x))), 2)
        x = F.max_pool2d(F.relu(self.b2(self.c2(x))), 2)
        return self.fc(self.drop(x.flatten(1)))


def split(n):
    d = load_digits()
    order = np.random.default_rng(8).permutation(len(d.target))
    x = torch.tensor(d.images[order] / 16.0, dtype=torch.float32)[:, None]
    y = torch.tensor(d.target[order])
    return x[:n], y[:n], x[n:], y[n:]


def main(cfg=Config()):
    torch.manual_seed(cfg.seed)
    xt, yt, xv, yv = split(cfg.labelled)
    model = ConvNet(cfg.dropout)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, cfg.epochs)
    for epoch in range(1, cfg.epochs + 1):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(xt)).split(cfg.batch_size):
            loss = F.cross_entropy(model(xt[idx]), yt[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        sched.step()
        if epoch % 4 == 0:
            model.eval()
            with torch.no_grad():
                out = model(xv)
            print(f"epoch {epoch:3d} train {total / len(xt):.4f} val {F.cross_entropy(out, yv).item():.4f} "
                  f"acc {(out.argmax(1) == yv).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
