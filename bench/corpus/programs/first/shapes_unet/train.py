"""Segments discs and squares in noisy 16x16 images with a small U-Net."""

import os
import random
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CLASSES = ("background", "disc", "square")
SIZE = 16


class Shapes(Dataset):
    def __init__(self, length, seed):
        rng = np.random.default_rng(seed)
        yy, xx = np.mgrid[:SIZE, :SIZE]
        self.images, self.masks = [], []
        for _ in range(length):
            mask = np.zeros((SIZE, SIZE), dtype=np.int64)
            for label in rng.permutation([1, 2]):
                cy, cx = rng.integers(3, SIZE - 3, size=2)
                radius = rng.integers(2, 5)
                if label == 1:
                    mask[(yy - cy) ** 2 + (xx - cx) ** 2 <= radius**2] = 1
                else:
                    mask[(abs(yy - cy) < radius) & (abs(xx - cx) < radius)] = 2
            image = np.choose(mask, [0.1, 0.7, 0.9]) + 0.1 * rng.standard_normal(mask.shape)
            self.images.append(image.astype(np.float32)[None])
            self.masks.append(mask)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        return torch.from_numpy(self.images[idx]), torch.from_numpy(self.masks[idx])


def double_conv(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1),
        nn.GroupNorm(4, c_out),
        nn.ReLU(),
        nn.Conv2d(c_out, c_out, 3, padding=1),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, n_classes, base=8):
        super().__init__()
        self.down1 = double_conv(1, base)
        self.down2 = double_conv(base, 2 * base)
        self.up = nn.ConvTranspose2d(2 * base, base, 2, stride=2)
        self.fuse = double_conv(2 * base, base)
        self.head = nn.Conv2d(base, n_classes, 1)

    def forward(self, x):
        skip = self.down1(x)
        deep = self.down2(F.max_pool2d(skip, 2))
        merged = torch.cat([skip, self.up(deep)], dim=1)
        return self.head(self.fuse(merged))


def dice_loss(logits, target):
    probs = logits.softmax(dim=1)
    onehot = F.one_hot(target, len(CLASSES)).permute(0, 3, 1, 2).float()
    overlap = (probs * onehot).sum(dim=(0, 2, 3))
    total = (probs + onehot).sum(dim=(0, 2, 3))
    return 1 - (2 * overlap / total.clamp(min=1e-6)).mean()


@torch.no_grad()
def mean_iou(net, loader):
    net.eval()
    inter, union = torch.zeros(len(CLASSES)), torch.zeros(len(CLASSES))
    for images, masks in loader:
        pred = net(images).argmax(dim=1)
        for c in range(len(CLASSES)):
            inter[c] += ((pred == c) & (masks == c)).sum()
            union[c] += ((pred == c) | (masks == c)).sum()
    return (inter / union.clamp(min=1)).mean().item()


seed = int(os.environ.get("SEED", "0"))
random.seed(seed)
np.random.seed(seed)
torch.manual_seed(seed)

train_loader = DataLoader(Shapes(480, seed), batch_size=16, shuffle=True)
val_loader = DataLoader(Shapes(96, seed + 10_000), batch_size=48)

net = UNet(len(CLASSES))
weights = torch.tensor([0.5, 1.0, 1.0])
ce = nn.CrossEntropyLoss(weight=weights)
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[4], gamma=0.3)
ckpt = Path("checkpoints")
ckpt.mkdir(exist_ok=True)

global_step = 0
for epoch in range(6):
    net.train()
    for images, masks in train_loader:
        logits = net(images)
        loss = ce(logits, masks) + dice_loss(logits, masks)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 1.0)
        optimizer.step()
        global_step += 1
        if global_step % 10 == 0:
            print(f"INFO: step {global_step} epoch {epoch} train loss: {loss.item():.4f}")
    scheduler.step()
    print(f"INFO: Validation mIoU: {mean_iou(net, val_loader):.4f}")
    torch.save(net.state_dict(), ckpt / f"epoch{epoch + 1}.pth")
