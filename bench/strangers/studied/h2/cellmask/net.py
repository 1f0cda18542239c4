import torch
from torch import nn


def double(c_in, c_out):
    return nn.Sequential(
        nn.Conv2d(c_in, c_out, 3, padding=1), nn.GroupNorm(4, c_out), nn.ReLU(),
        nn.Conv2d(c_out, c_out, 3, padding=1), nn.GroupNorm(4, c_out), nn.ReLU(),
    )


class TinyUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.d1, self.d2 = double(1, width), double(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.u1 = double(2 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(nn.functional.max_pool2d(a, 2))
        return self.out(self.u1(torch.cat([a, self.up(b)], dim=1)))

    @torch.no_grad()
    def segment(self, x, threshold=0.5):
        return (torch.sigmoid(self(x)) > threshold).float()
