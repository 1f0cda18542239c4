from __future__ import annotations

import argparse

import torch
from torch import Tensor
from torch.nn import functional as F

from unet import VesselNet


def vessels(n: int, side: int = 32) -> tuple[Tensor, Tensor]:
    x = torch.linspace(0, 1, side)
    centre = 0.5 + 0.3 * torch.sin(6 * x[None] * (0.5 + torch.rand(n, 1)) + 6 * torch.rand(n, 1))
    rows = torch.linspace(0, 1, side)[None, :, None]
    mask = ((rows - centre[:, None, :]).abs() < 0.06).float()[:, None]
    image = 0.7 * mask + 0.3 * torch.randn(n, 1, side, side)
    return image, mask


def dice_loss(logits: Tensor, mask: Tensor) -> Tensor:
    p = logits.sigmoid().flatten(1)
    m = mask.flatten(1)
    return (1 - (2 * (p * m).sum(1) + 1) / (p.sum(1) + m.sum(1) + 1)).mean()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--learned-up", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    images, masks = vessels(160)
    model = VesselNet(learned_up=args.learned_up)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        model.train()
        for idx in torch.randperm(128).split(16):
            logits = model(images[idx])
            loss = F.binary_cross_entropy_with_logits(logits, masks[idx]) + dice_loss(logits, masks[idx])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(epoch, "dice", 1 - dice_loss(model(images[128:]), masks[128:]).item())


if __name__ == "__main__":
    main()
