#!/usr/bin/env python
"""Cell segmentation, small U-Net. Large effective batches on a small machine via --accum."""
import argparse
import itertools
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

log = logging.getLogger("seg")


class Cells(Dataset):
    def __init__(self, n, seed, size=32):
        g = torch.Generator().manual_seed(seed)
        grid = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij"), -1).float()
        self.items = []
        for _ in range(n):
            mask = torch.zeros(size, size)
            for _ in range(3):
                c = torch.rand(2, generator=g) * size
                r = 3 + 4 * torch.rand(1, generator=g)
                mask = torch.maximum(mask, ((grid - c).norm(dim=-1) < r).float())
            img = 0.7 * mask + 0.4 * torch.randn(size, size, generator=g)
            self.items.append((img[None], mask[None]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, w=8):
        super().__init__()
        self.d1, self.d2, self.mid = block(1, w), block(w, 2 * w), block(2 * w, 2 * w)
        self.u2, self.u1 = block(4 * w, w), block(2 * w, w)
        self.head = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        x = self.u2(torch.cat([F.interpolate(m, scale_factor=2.0), b], 1))
        x = self.u1(torch.cat([F.interpolate(x, scale_factor=2.0), a], 1))
        return self.head(x)


def criterion(logits, mask):
    p = logits.sigmoid()
    inter = (p * mask).sum((1, 2, 3))
    dice = 1 - (2 * inter + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
    return F.binary_cross_entropy_with_logits(logits, mask) + dice.mean()


def grouped(iterable, n):
    it = iter(iterable)
    while chunk := list(itertools.islice(it, n)):
        yield chunk


@torch.inference_mode()
def iou(model, loader):
    model.eval()
    inter = union = 0.0
    for x, m in loader:
        p = model(x) > 0
        inter += (p & m.bool()).sum().item()
        union += (p | m.bool()).sum().item()
    return inter / max(union, 1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=4)
    ap.add_argument("--micro-batch", type=int, default=4)
    ap.add_argument("--accum", type=int, default=8, help="micro-batches per optimizer update")
    ap.add_argument("--lr", type=float, default=0.05, help="tuned for a batch of micro_batch*accum")
    ap.add_argument("--seed", type=int, default=1)
    a = ap.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.manual_seed(a.seed)

    train = DataLoader(Cells(128, 10), a.micro_batch, shuffle=True)
    val = DataLoader(Cells(32, 20), 16)
    model = UNet()
    opt = torch.optim.SGD(model.parameters(), lr=a.lr, momentum=0.9, nesterov=True)

    for epoch in range(a.epochs):
        model.train()
        epoch_loss, updates = 0.0, 0
        for chunk in grouped(train, a.accum):
            opt.zero_grad(set_to_none=True)
            update_loss = 0.0
            for x, m in chunk:
                loss = criterion(model(x), m)
                loss.backward()
                update_loss += loss.item() / len(chunk)
            opt.step()
            epoch_loss += update_loss
            updates += 1
        log.info("epoch %d  updates %d  loss %.4f  val IoU %.3f", epoch, updates, epoch_loss / updates, iou(model, val))


if __name__ == "__main__":
    main()
