import torch
import torch.nn as nn


def conv_bn(cin, cout, stride=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False),
        nn.BatchNorm2d(cout),
        nn.ReLU(inplace=True),
    )


class AuxHead(nn.Module):
    def __init__(self, cin, num_classes):
        super().__init__()
        self.reduce = conv_bn(cin, 64)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, num_classes)

    def forward(self, x):
        return self.fc(self.pool(self.reduce(x)).flatten(1))


class SmallInception(nn.Module):
    def __init__(self, num_classes=100, width=48, use_aux=True):
        super().__init__()
        self.stem = nn.Sequential(conv_bn(3, width), conv_bn(width, width, 2))
        self.mid = nn.Sequential(conv_bn(width, 2 * width), conv_bn(2 * width, 2 * width, 2))
        self.top = nn.Sequential(conv_bn(2 * width, 4 * width), conv_bn(4 * width, 4 * width, 2))
        self.aux = AuxHead(2 * width, num_classes)
        self.use_aux = use_aux
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.3), nn.Linear(4 * width, num_classes)
        )

    def forward(self, x):
        m = self.mid(self.stem(x))
        out = self.head(self.top(m))
        if self.training and self.use_aux:
            return out, self.aux(m)
        return out, None
