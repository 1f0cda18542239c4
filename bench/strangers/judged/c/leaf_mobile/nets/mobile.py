from functools import partial

import torch.nn as nn

from .registry import register

ACT = partial(nn.Hardswish, inplace=True)


class SepConv(nn.Module):
    """depthwise 3x3 followed by pointwise 1x1"""

    def __init__(self, c_in, c_out, stride=1, norm=nn.BatchNorm2d):
        super().__init__()
        self.dw = nn.Conv2d(c_in, c_in, 3, stride, 1, groups=c_in, bias=False)
        self.dw_norm = norm(c_in)
        self.pw = nn.Conv2d(c_in, c_out, 1, bias=False)
        self.pw_norm = norm(c_in)
        self.act = ACT()

    def forward(self, x):
        x = self.act(self.dw_norm(self.dw(x)))
        return self.act(self.pw_norm(self.pw(x)))


class Mobile(nn.Module):
    def __init__(self, plan, n_classes, stem=16):
        super().__init__()
        layers = [nn.Conv2d(3, stem, 3, 1, 1, bias=False), nn.BatchNorm2d(stem), ACT()]
        c = stem
        for width, stride in plan:
            layers.append(SepConv(c, width, stride))
            c = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, n_classes))

    def forward(self, x):
        return self.head(self.features(x))


@register("mobile_xs")
def mobile_xs(n_classes):
    return Mobile([(16, 1), (32, 2), (32, 1)], n_classes)


@register("mobile_s")
def mobile_s(n_classes):
    return Mobile([(16, 1), (32, 2), (64, 2), (64, 1)], n_classes, stem=16)
