"""Leaf vs. background segmentation. The pictures are large on the real data, so the
effective batch of 32 is collected over several micro-batches."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    size: int = 24
    effective_batch: int = 32
    micro_batch: int = 4
    epochs: int = 3
    lr: float = 0.05          # tuned for a plain batch of 32
    momentum: float = 0.9
    seed: int = 5

    @property
    def accum(self):
        return self.effective_batch // self.micro_batch


class Leaves(Dataset):
    """Noisy ellipses on a noisy ground."""

    def __init__(self, n, size, seed):
        g = torch.Generator().manual_seed(seed)
        yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        self.items = []
        for _ in range(n):
            cx, cy = torch.randint(7, size - 7, (2,), generator=g)
            a, b = torch.randint(3, 7, (2,), generator=g)
            mask = (((xx - cx) / a) ** 2 + ((yy - cy) / b) ** 2 <= 1).float()
            img = torch.stack([0.3 + 0.1 * mask, 0.3 + 0.35 * mask, 0.25 + 0.0 * mask])
            img = img + 0.15 * torch.randn(3, size, size, generator=g)
            self.items.append((img, mask[None]))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.ReLU())


class SmallUNet(nn.Module):
    def __init__(self, w=8):
        super().__init__()
        self.d1, self.d2 = block(3, w), block(w, 2 * w)
        self.mid = block(2 * w, 2 * w)
        self.u1 = block(4 * w, w)
        self.u2 = block(2 * w, w)
        self.head = nn.Conv2d(w, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        u = self.u1(torch.cat([F.interpolate(m, scale_factor=2), b], 1))
        u = self.u2(torch.cat([F.interpolate(u, scale_factor=2), a], 1))
        return self.head(u)


@torch.no_grad()
def iou(net, loader):
    net.eval()
    inter = union = 0.0
    for img, mask in loader:
        p = net(img) > 0
        m = mask > 0.5
        inter += (p & m).sum().item()
        union += (p | m).sum().item()
    return inter / max(union, 1.0)


def train_epoch(net, loader, optimizer, cfg):
    net.train()
    window_loss, history = 0.0, []
    optimizer.zero_grad()
    for i, (img, mask) in enumerate(loader, start=1):
        loss = F.binary_cross_entropy_with_logits(net(img), mask)
        loss.backward()
        window_loss += loss.item() / cfg.accum
        if i % cfg.accum == 0:
            optimizer.step()
            optimizer.zero_grad()
            history.append(window_loss)
            window_loss = 0.0
    return sum(history) / len(history)


def main(cfg=Settings()):
    torch.manual_seed(cfg.seed)
    train_loader = DataLoader(Leaves(256, cfg.size, cfg.seed), cfg.micro_batch, shuffle=True)
    val_loader = DataLoader(Leaves(48, cfg.size, cfg.seed + 1), 16)
    net = SmallUNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=cfg.lr, momentum=cfg.momentum)
    for epoch in range(cfg.epochs):
        loss = train_epoch(net, train_loader, optimizer, cfg)
        print(f"[{epoch}] loss={loss:.4f} val_iou={iou(net, val_loader):.3f}")


if __name__ == "__main__":
    main()
