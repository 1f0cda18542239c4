import torch
from torch import nn


class ConvBlock(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(c_in, c_out, 3, padding=1, bias=False), nn.GroupNorm(4, c_out), nn.SiLU(),
            nn.Conv2d(c_out, c_out, 3, padding=1, bias=False), nn.GroupNorm(4, c_out), nn.SiLU(),
        )

    def forward(self, x):
        return self.body(x)


class Down(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.conv = ConvBlock(c_in, c_out)

    def forward(self, x):
        return self.conv(self.pool(x))


class Up(nn.Module):
    """Learned 2x upsampling, then fusion with the skip connection."""

    def __init__(self, c_deep, c_skip):
        super().__init__()
        self.grow = nn.ConvTranspose2d(c_deep, c_skip, 2, stride=2)
        self.conv = ConvBlock(c_deep + c_skip, c_skip)

    def forward(self, deep, skip):
        return self.conv(torch.cat([self.grow(deep), skip], dim=1))
