import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def parse():
    ap = argparse.ArgumentParser(description="pretrain on clean shapes, adapt to inverted noisy ones")
    ap.add_argument("--freeze", default="bn", help="parameters whose name contains one of these stay fixed")
    ap.add_argument("--lr", type=float, default=3e-3)
    ap.add_argument("--epochs", type=int, default=5)
    return ap.parse_args()


def shapes(n, rng, inverted=False, noise=0.1, size=12):
    yy, xx = np.mgrid[-1:1:size * 1j, -1:1:size * 1j]
    out, lab = np.zeros((n, 1, size, size), np.float32), rng.integers(0, 4, n)
    for i, k in enumerate(lab):
        cx, cy, s = rng.uniform(-0.25, 0.25), rng.uniform(-0.25, 0.25), rng.uniform(0.4, 0.7)
        u, v = (xx - cx) / s, (yy - cy) / s
        m = [np.hypot(u, v) < 1, np.maximum(abs(u), abs(v)) < 0.85, abs(u) + abs(v) < 1.1,
             (np.minimum(abs(u), abs(v)) < 0.3) & (np.maximum(abs(u), abs(v)) < 1)][k]
        out[i, 0] = (1 - m if inverted else m) + rng.normal(0, noise, m.shape)
    return torch.from_numpy(out), torch.from_numpy(lab)


class ShapeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(12)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(24)
        self.fc1 = nn.Linear(24 * 9, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def fix(model, keys):
    for name, p in model.named_parameters():
        p.requires_grad = not any(k in name for k in keys)


def fit(model, data, test, lr, epochs, title):
    opt = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=lr)
    x, y = data
    for ep in range(epochs):
        model.train()
        tot = 0.0
        for idx in torch.randperm(len(x)).split(20):
            opt.zero_grad()
            loss = F.cross_entropy(model(x[idx]), y[idx])
            loss.backward()
            opt.step()
            tot += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            acc = (model(test[0]).argmax(1) == test[1]).float().mean()
        print(f"{title} epoch {ep}: loss {tot / len(x):.4f} acc {acc:.3f}")


if __name__ == "__main__":
    args = parse()
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    net = ShapeNet()
    fit(net, shapes(600, rng), shapes(200, rng), args.lr, args.epochs, "pretrain")
    fix(net, args.freeze)
    fit(net, shapes(600, rng, True, 0.3), shapes(200, rng, True, 0.3), args.lr, args.epochs, "adapt")
