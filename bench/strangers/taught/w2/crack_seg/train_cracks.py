"""Pavement crack segmentation, 512px tiles. Usage: python train_cracks.py --root data/cracks"""
import argparse
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class CrackTiles(Dataset):
    def __init__(self, root, split, augment=False):
        self.images = sorted(Path(root, split, "img").glob("*.jpg"))
        self.masks = Path(root, split, "mask")
        self.augment = augment

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        p = self.images[i]
        img = np.asarray(Image.open(p).convert("RGB"), dtype=np.float32) / 255.0
        msk = np.asarray(Image.open(self.masks / (p.stem + ".png")).convert("L")) > 127
        if self.augment and np.random.rand() < 0.5:
            img, msk = img[:, ::-1], msk[:, ::-1]
        if self.augment and np.random.rand() < 0.5:
            img, msk = img[::-1], msk[::-1]
        img = torch.from_numpy(np.ascontiguousarray(img.transpose(2, 0, 1)))
        msk = torch.from_numpy(np.ascontiguousarray(msk)).float().unsqueeze(0)
        return (img - 0.5) / 0.25, msk


def block(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, base=32):
        super().__init__()
        c = [base, base * 2, base * 4, base * 8]
        self.enc = nn.ModuleList([block(3, c[0]), block(c[0], c[1]), block(c[1], c[2])])
        self.mid = block(c[2], c[3])
        self.up = nn.ModuleList([nn.ConvTranspose2d(c[i + 1], c[i], 2, stride=2) for i in (2, 1, 0)])
        self.dec = nn.ModuleList([block(c[i] * 2, c[i]) for i in (2, 1, 0)])
        self.out = nn.Conv2d(c[0], 1, 1)

    def forward(self, x):
        skips = []
        for e in self.enc:
            x = e(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.mid(x)
        for up, dec, s in zip(self.up, self.dec, reversed(skips)):
            x = dec(torch.cat([up(x), s], dim=1))
        return self.out(x)


class DiceBCELoss(nn.Module):
    def __init__(self, smooth=1.0, bce_weight=0.5):
        super().__init__()
        self.smooth = smooth
        self.bce_weight = bce_weight

    def forward(self, inputs, targets):
        inputs = torch.sigmoid(inputs)
        inputs = inputs.reshape(inputs.size(0), -1)
        targets = targets.reshape(targets.size(0), -1)

        inter = (inputs * targets).sum(1)
        dice = 1 - (2.0 * inter + self.smooth) / (inputs.sum(1) + targets.sum(1) + self.smooth)

        # plain binary_cross_entropy refuses to run under autocast
        bce = F.binary_cross_entropy_with_logits(inputs, targets)
        return self.bce_weight * bce + (1 - self.bce_weight) * dice.mean()


@torch.no_grad()
def iou(model, loader, device):
    model.eval()
    inter = union = 0
    for x, y in loader:
        p = model(x.to(device)).sigmoid() > 0.5
        y = y.to(device).bool()
        inter += (p & y).sum().item()
        union += (p | y).sum().item()
    return inter / max(union, 1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="data/cracks")
    ap.add_argument("--epochs", type=int, default=60)
    ap.add_argument("--bs", type=int, default=8)
    ap.add_argument("--lr", type=float, default=3e-4)
    args = ap.parse_args()
    device = torch.device("cuda")

    tl = DataLoader(CrackTiles(args.root, "train", True), args.bs, shuffle=True, num_workers=4, drop_last=True)
    vl = DataLoader(CrackTiles(args.root, "val"), args.bs, num_workers=4)
    model = UNet().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    scaler = torch.amp.GradScaler("cuda")
    loss_fn = DiceBCELoss()

    best = 0.0
    for ep in range(args.epochs):
        model.train()
        running = 0.0
        for x, y in tl:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = loss_fn(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            running += loss.item()
        sched.step()
        score = iou(model, vl, device)
        print(f"{ep:03d} loss {running / len(tl):.4f} IoU {score:.4f}")
        if score > best:
            best = score
            torch.save(model.state_dict(), "cracks_best.pt")


if __name__ == "__main__":
    main()
