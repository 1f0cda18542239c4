import torch
from torch import nn


def block(i, o):
    return nn.Sequential(nn.Conv3d(i, o, 3, padding=1, bias=False), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01, True),
                         nn.Conv3d(o, o, 3, padding=1, bias=False), nn.InstanceNorm3d(o, affine=True), nn.LeakyReLU(0.01, True))


class UNet3D(nn.Module):
    def __init__(self, classes, c=16, depth=4):
        super().__init__()
        chs = [c * 2 ** i for i in range(depth + 1)]
        self.down = nn.ModuleList(block(1 if i == 0 else chs[i - 1], chs[i]) for i in range(depth + 1))
        self.up = nn.ModuleList(nn.ConvTranspose3d(chs[i + 1], chs[i], 2, 2) for i in reversed(range(depth)))
        self.dec = nn.ModuleList(block(2 * chs[i], chs[i]) for i in reversed(range(depth)))
        self.pool = nn.MaxPool3d(2)
        self.head = nn.Conv3d(c, classes, 1)

    def forward(self, x):
        skips = []
        for i, d in enumerate(self.down):
            x = d(x if i == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for u, d in zip(self.up, self.dec):
            x = d(torch.cat([u(x), skips.pop()], 1))
        return self.head(x)
