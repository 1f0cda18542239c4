import torch
import torch.nn as nn


def block(i, o, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class RoadSeg(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.enc1, self.enc2 = block(1, width), block(width, 2 * width, 2)
        self.aux = nn.Conv2d(2 * width, 2, 1)
        self.mid = block(2 * width, 2 * width)
        self.up = nn.Upsample(scale_factor=2)
        self.dec = block(3 * width, width)
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        a = self.enc1(x)
        b = self.enc2(a)
        main = self.out(self.dec(torch.cat([a, self.up(self.mid(b))], 1)))
        return {"main": main, "aux": self.up(self.aux(b))}
