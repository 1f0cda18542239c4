import torch
import torch.nn as nn


class DoubleConv(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1, bias=False),
            nn.BatchNorm2d(cout),
            nn.ReLU(inplace=True),
        )


class UpBlock(nn.Module):
    def __init__(self, cin, cskip, cout):
        super().__init__()
        self.up = nn.ConvTranspose2d(cin, cout, kernel_size=2, stride=2)
        self.conv = DoubleConv(cout + cskip, cout)

    def forward(self, x, skip):
        return self.conv(torch.cat([skip, self.up(x)], dim=1))


class UNet(nn.Module):
    """U-Net with len(widths) resolution levels; returns logits."""

    def __init__(self, in_channels=1, out_channels=1, widths=(8, 16, 32)):
        super().__init__()
        self.stem = DoubleConv(in_channels, widths[0])
        self.downs = nn.ModuleList(
            nn.Sequential(nn.MaxPool2d(2), DoubleConv(a, b)) for a, b in zip(widths[:-1], widths[1:])
        )
        rev = list(widths)[::-1]
        self.ups = nn.ModuleList(UpBlock(a, b, b) for a, b in zip(rev[:-1], rev[1:]))
        self.head = nn.Conv2d(widths[0], out_channels, kernel_size=1)

    def forward(self, x):
        feats = [self.stem(x)]
        for down in self.downs:
            feats.append(down(feats[-1]))
        out = feats.pop()
        for up in self.ups:
            out = up(out, feats.pop())
        return self.head(out)
