from torch import nn


def dw_block(c_in, c_out, stride=1):
    return nn.Sequential(
        nn.Conv2d(c_in, c_in, 3, stride, 1, groups=c_in, bias=False), nn.BatchNorm2d(c_in), nn.ReLU(),
        nn.Conv2d(c_in, c_out, 1, bias=False), nn.BatchNorm2d(c_out), nn.ReLU(),
    )


class DSCNN(nn.Module):
    """Hello Edge (Zhang et al. 2017) style depthwise separable CNN."""

    def __init__(self, n_classes, width=32):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, (10, 4), (2, 2), (4, 1), bias=False),
                                  nn.BatchNorm2d(width), nn.ReLU())
        self.blocks = nn.Sequential(*[dw_block(width, width) for _ in range(4)])
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(width, n_classes))

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))
