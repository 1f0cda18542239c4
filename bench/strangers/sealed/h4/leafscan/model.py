from torch import nn


def conv_unit(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class LeafNet(nn.Module):
    def __init__(self, species):
        super().__init__()
        self.stem = conv_unit(3, 16)
        self.down = conv_unit(16, 32, 2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.neck = nn.Sequential(nn.Flatten(), nn.Linear(32, 48), nn.BatchNorm1d(48), nn.ReLU())
        self.cls = nn.Linear(48, species)

    def forward(self, x):
        return self.cls(self.neck(self.pool(self.down(self.stem(x)))))
