import torch
import torch.nn as nn


def conv_bn(i, o, s):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU6(inplace=True))


class ShelfDetector(nn.Module):
    """Two feature levels, `n_anchor` boxes per cell, dense class and offset prediction."""

    def __init__(self, n_classes, n_anchor=2, width=24):
        super().__init__()
        self.n_classes = n_classes
        self.stem = nn.Sequential(conv_bn(3, width, 2), conv_bn(width, width, 2), conv_bn(width, width * 2, 2))
        self.down = conv_bn(width * 2, width * 2, 2)
        self.cls_heads = nn.ModuleList(nn.Conv2d(width * 2, n_anchor * (n_classes + 1), 3, padding=1) for _ in range(2))
        self.box_heads = nn.ModuleList(nn.Conv2d(width * 2, n_anchor * 4, 3, padding=1) for _ in range(2))

    def forward(self, images):
        p3 = self.stem(images)
        p4 = self.down(p3)
        scores, boxes = [], []
        for feat, ch, bh in zip((p3, p4), self.cls_heads, self.box_heads):
            b = feat.shape[0]
            scores.append(ch(feat).permute(0, 2, 3, 1).reshape(b, -1, self.n_classes + 1))
            boxes.append(bh(feat).permute(0, 2, 3, 1).view(b, -1, 4))
        return torch.cat(scores, 1), torch.cat(boxes, 1)


def make_anchors(size, strides=(8, 16), scales=((16, 24), (32, 48))):
    out = []
    for s, sc in zip(strides, scales):
        c = (torch.arange(size // s) + 0.5) * s
        y, x = torch.meshgrid(c, c, indexing="ij")
        for cy, cx in zip(y.flatten().tolist(), x.flatten().tolist()):
            out += [[cx, cy, w, w] for w in sc]
    return torch.tensor(out)
