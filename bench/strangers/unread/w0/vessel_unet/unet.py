from __future__ import annotations

import torch
from torch import Tensor, nn


def double_conv(c_in: int, c_out: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.GroupNorm(4, c_out), nn.ReLU(inplace=True),
        nn.Conv2d(c_out, c_out, 3, padding=1, bias=False), nn.GroupNorm(4, c_out), nn.ReLU(inplace=True),
    )


class Up(nn.Module):
    def __init__(self, c_in: int, c_skip: int, c_out: int, learned: bool = False) -> None:
        super().__init__()
        self.enlarge: nn.Module
        if learned:
            self.enlarge = nn.ConvTranspose2d(c_in, c_in // 2, 2, stride=2)
        else:
            self.enlarge = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.merge = double_conv(c_in // 2 + c_skip, c_out)

    def forward(self, low: Tensor, skip: Tensor) -> Tensor:
        return self.merge(torch.cat([skip, self.enlarge(low)], dim=1))


class VesselNet(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (8, 16, 32), learned_up: bool = False) -> None:
        super().__init__()
        self.down = nn.ModuleList()
        c = 1
        for w in widths:
            self.down.append(double_conv(c, w))
            c = w
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList(Up(hi, lo, lo, learned_up) for hi, lo in zip(widths[:0:-1], widths[-2::-1]))
        self.head = nn.Conv2d(widths[0], 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for block in self.up:
            x = block(x, skips.pop())
        return self.head(x)
