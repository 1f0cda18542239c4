import torch.nn as nn


def conv_block(i, o, k=5, s=2):
    return nn.Sequential(nn.Conv1d(i, o, k, s, k // 2), nn.BatchNorm1d(o), nn.GELU())


class SpectrumEncoder(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.stem = conv_block(1, 16)
        self.body = nn.Sequential(conv_block(16, 32), conv_block(32, dim))

    def forward(self, x):
        return self.body(self.stem(x.unsqueeze(1))).mean(-1)


class SimCLR(nn.Module):
    def __init__(self, dim=64, proj=32):
        super().__init__()
        self.encoder = SpectrumEncoder(dim)
        self.projector = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, proj))

    def forward(self, x):
        return nn.functional.normalize(self.projector(self.encoder(x)), dim=-1)


class Classifier(nn.Module):
    def __init__(self, n_classes, dim=64):
        super().__init__()
        self.backbone = SpectrumEncoder(dim)
        self.head = nn.Linear(dim, n_classes)

    def forward(self, x):
        return self.head(self.backbone(x))
