import argparse

import torch
from torch import nn

from loaders import make_loader


class DepthNet(nn.Module):
    def __init__(self, w=12):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, w, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(w, 2 * w, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(2 * w * 16, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.head(self.conv(x)).squeeze(1)


def run(opts):
    torch.manual_seed(opts.seed)
    train = make_loader(480, True, 32, opts.workers, opts.seed)
    test = make_loader(200, False, 100, 0, opts.seed)
    net = DepthNet()
    optim = torch.optim.AdamW(net.parameters(), lr=opts.lr)
    for ep in range(opts.epochs):
        net.train()
        total = 0.0
        for img, depth in train:
            optim.zero_grad()
            loss = nn.functional.l1_loss(net(img), depth)
            loss.backward()
            optim.step()
            total += loss.item() * len(img)
        net.eval()
        with torch.no_grad():
            err = sum((net(i) - d).abs().sum().item() for i, d in test) / 200
        print(f"ep {ep}: train {total / 480:.3f} test {err:.3f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--seed", type=int, default=3)
    run(p.parse_args())
