from torch import nn


def round_channels(c, multiplier, divisor=8):
    """Scale a channel count and keep it divisible, never dropping more than 10 %."""
    c = c * multiplier
    new = max(divisor, int(c + divisor / 2) // divisor * divisor)
    if new < 0.9 * c:
        new += divisor
    return new


class ConvNormAct(nn.Sequential):
    def __init__(self, c_in, c_out, kernel=3, stride=1, groups=1):
        super().__init__(
            nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(c_out),
            nn.ReLU6(inplace=True),
        )


class InvertedResidual(nn.Module):
    def __init__(self, c_in, c_out, stride, expand):
        super().__init__()
        mid = c_in * expand
        self.skip = stride == 1 and c_in == c_out
        self.body = nn.Sequential(
            ConvNormAct(c_in, mid, 1),
            ConvNormAct(mid, mid, 3, stride, groups=mid),
            nn.Conv2d(mid, c_out, 1, bias=False),
            nn.BatchNorm2d(c_out),
        )

    def forward(self, x):
        return x + self.body(x) if self.skip else self.body(x)
