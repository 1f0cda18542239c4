"""Vessel segmentation on fundus patches (CUDA mixed precision)."""
from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class FundusPatches(Dataset):
    def __init__(self, n: int, size: int, seed: int):
        g = torch.Generator().manual_seed(seed)
        grid = torch.stack(torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij"))
        self.images, self.masks = [], []
        for _ in range(n):
            a, b, c = torch.rand(3, generator=g) * 2 - 1
            dist = (grid[0] - a * grid[1] ** 2 - b * grid[1] - 0.3 * c).abs()
            mask = (dist < 0.12).float()
            img = 0.6 - 0.3 * mask + 0.05 * torch.randn(size, size, generator=g)
            self.images.append(img[None])
            self.masks.append(mask[None])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.masks[i]


def double_conv(cin, cout):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
        nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
    )


class SmallUNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.down1 = double_conv(1, width)
        self.down2 = double_conv(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.merge = double_conv(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        s = self.down1(x)
        h = self.down2(F.max_pool2d(s, 2))
        return self.out(self.merge(torch.cat([self.up(h), s], dim=1)))


class WarmupCosine:
    """Optimizer front end that sets the learning rate before every update."""

    def __init__(self, inner: torch.optim.Optimizer, peak: float, warmup: int, total: int):
        self.inner, self.peak, self.warmup, self.total = inner, peak, warmup, total
        self.t = 0

    def rate(self) -> float:
        if self.t < self.warmup:
            return self.peak * (self.t + 1) / self.warmup
        p = (self.t - self.warmup) / max(1, self.total - self.warmup)
        return 0.02 * self.peak + 0.49 * self.peak * (1 + math.cos(math.pi * min(p, 1.0)))

    def step(self):
        lr = self.rate()
        for group in self.inner.param_groups:
            group["lr"] = lr
        self.inner.step()
        self.t += 1

    def zero_grad(self):
        self.inner.zero_grad(set_to_none=True)


class VesselTrainer:
    def __init__(self, epochs=6, batch=16, peak_lr=2e-3):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.amp = self.device.type == "cuda"
        self.train_dl = DataLoader(FundusPatches(128, 32, 0), batch_size=batch, shuffle=True, drop_last=True)
        self.val_dl = DataLoader(FundusPatches(32, 32, 1), batch_size=batch)
        self.model = SmallUNet().to(self.device)
        self.epochs = epochs
        adam = torch.optim.AdamW(self.model.parameters(), lr=peak_lr, weight_decay=1e-4)
        self.optim = WarmupCosine(adam, peak_lr, warmup=8, total=epochs * len(self.train_dl))
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.amp)

    def criterion(self, logits, mask):
        prob = logits.float().sigmoid()
        inter = (prob * mask).sum((1, 2, 3))
        dice = 1 - (2 * inter + 1) / (prob.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
        return F.binary_cross_entropy_with_logits(logits.float(), mask) + dice.mean()

    def train_step(self, img, mask):
        img = img.to(self.device, non_blocking=True)
        mask = mask.to(self.device, non_blocking=True)
        self.optim.zero_grad()
        with torch.autocast(self.device.type, dtype=torch.float16, enabled=self.amp):
            logits = self.model(img)
            loss = self.criterion(logits, mask)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optim.inner)
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optim.step()
        self.scaler.update()
        return loss.detach()

    @torch.inference_mode()
    def validate(self):
        self.model.eval()
        inter = total = torch.zeros((), device=self.device)
        for img, mask in self.val_dl:
            img, mask = img.to(self.device), mask.to(self.device)
            with torch.autocast(self.device.type, dtype=torch.float16, enabled=self.amp):
                pred = self.model(img) > 0
            inter = inter + 2 * (pred * mask).sum()
            total = total + pred.sum() + mask.sum()
        return (inter / total.clamp(min=1)).item()

    def fit(self):
        for epoch in range(self.epochs):
            self.model.train()
            running = torch.zeros((), device=self.device)
            for img, mask in self.train_dl:
                running += self.train_step(img, mask)
            print(f"[{epoch}] loss {running.item() / len(self.train_dl):.4f} dice {self.validate():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    VesselTrainer().fit()
