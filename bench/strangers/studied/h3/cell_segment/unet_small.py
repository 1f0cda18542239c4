import torch
from torch import nn


def double(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(4, cout), nn.SiLU(),
                         nn.Conv2d(cout, cout, 3, padding=1), nn.SiLU())


class SmallUNet(nn.Module):
    def __init__(self, classes=3, ch=8):
        super().__init__()
        self.d1, self.d2 = double(1, ch), double(ch, 2 * ch)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(2 * ch, ch, 2, stride=2)
        self.u1 = double(2 * ch, ch)
        self.out = nn.Conv2d(ch, classes, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        return self.out(self.u1(torch.cat([a, self.up(b)], 1)))
