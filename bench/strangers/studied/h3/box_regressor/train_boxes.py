"""Predict the bounding box of a bright blob (cx, cy, w, h relative to the image)."""
import argparse
import functools

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SIZE = 24


def blobs(n, seed):
    rng = np.random.default_rng(seed)
    imgs = 0.3 * rng.random((n, 1, SIZE, SIZE), dtype=np.float32)
    boxes = np.empty((n, 4), dtype=np.float32)
    for i in range(n):
        w, h = rng.integers(4, 12, 2)
        x, y = rng.integers(0, SIZE - w), rng.integers(0, SIZE - h)
        imgs[i, 0, y:y + h, x:x + w] += rng.uniform(0.5, 1.0)
        boxes[i] = (x + w / 2, y + h / 2, w, h)
    boxes /= SIZE
    noisy = boxes + rng.normal(scale=0.01, size=boxes.shape).astype(np.float32)
    bad = rng.random(n) < 0.05
    noisy[bad] = rng.random((bad.sum(), 4), dtype=np.float32)
    return torch.from_numpy(imgs), torch.from_numpy(noisy), torch.from_numpy(boxes)


class BoxNet(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, ch, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(ch, 2 * ch, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(),
        )
        self.regress = nn.Sequential(nn.Linear(2 * ch * (SIZE // 4) ** 2, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, x):
        return self.regress(self.trunk(x)).sigmoid()


def box_loss(pred, target, beta):
    """Huber-like: quadratic below beta (a few pixels), linear for mislabelled boxes."""
    centre = F.smooth_l1_loss(pred[:, :2], target[:, :2], beta)
    extent = F.smooth_l1_loss(pred[:, 2:].log(), target[:, 2:].clamp(min=0.02).log(), beta)
    return centre + 0.5 * extent


def iou(a, b):
    ax1, ax2 = a[:, :2] - a[:, 2:] / 2, a[:, :2] + a[:, 2:] / 2
    bx1, bx2 = b[:, :2] - b[:, 2:] / 2, b[:, :2] + b[:, 2:] / 2
    inter = (torch.minimum(ax2, bx2) - torch.maximum(ax1, bx1)).clamp(min=0).prod(1)
    return inter / (a[:, 2:].prod(1) + b[:, 2:].prod(1) - inter)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--beta", type=float, default=0.02)
    args = ap.parse_args()
    torch.manual_seed(0)
    x, y, _ = blobs(800, 0)
    xv, _, yv = blobs(200, 1)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    net = BoxNet()
    opt = torch.optim.Adam(net.parameters(), lr=args.lr)
    criterion = functools.partial(box_loss, beta=args.beta)
    for epoch in range(args.epochs):
        net.train()
        total = 0.0
        for xb, yb in loader:
            opt.zero_grad()
            loss = criterion(net(xb), yb)
            loss.backward()
            opt.step()
            total += loss.item()
        net.eval()
        with torch.no_grad():
            q = iou(net(xv), yv).mean().item()
        print(f"{epoch:2d} loss {total / len(loader):.5f}  mean IoU {q:.3f}")


if __name__ == "__main__":
    main()
