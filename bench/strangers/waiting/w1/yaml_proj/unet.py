import torch
from torch import nn


def conv(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                         nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, base_width, depth, c_in=1, n_out=1):
        super().__init__()
        ws = [base_width * 2 ** k for k in range(depth + 1)]
        self.down = nn.ModuleList([conv(i, o) for i, o in zip([c_in] + ws[:-1], ws)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(ws[k + 1], ws[k], 2, 2) for k in reversed(range(depth))])
        self.dec = nn.ModuleList([conv(2 * ws[k], ws[k]) for k in reversed(range(depth))])
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Conv2d(ws[0], n_out, 1)

    def forward(self, x):
        skips = []
        for k, d in enumerate(self.down):
            x = d(x if k == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for u, d in zip(self.up, self.dec):
            x = d(torch.cat([u(x), skips.pop()], 1))
        return self.out(x)
