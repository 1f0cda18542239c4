import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        )
        self.width = width * 16

    def forward(self, x):
        return self.trunk(x).flatten(1)


class RotationPretext(nn.Module):
    """Guess by how many quarter turns the picture was rotated."""

    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.guess = nn.Linear(self.backbone.width, 4)

    def forward(self, x):
        return self.guess(self.backbone(x))


class LinearProbe(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = Backbone()
        self.probe = nn.Linear(self.backbone.width, classes)

    def adopt(self, state):
        missing, unexpected = self.load_state_dict(state, strict=False)
        assert set(missing) == {"probe.weight", "probe.bias"}, missing
        assert set(unexpected) == {"guess.weight", "guess.bias"}, unexpected
        self.backbone.requires_grad_(False)
        return self

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            features = self.backbone(x)
        return self.probe(features)
