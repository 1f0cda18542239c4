from torch import nn


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        )
        self.width = 96

    def forward(self, x):
        return self.conv(x)


class Classifier(nn.Module):
    """A trunk with an exchangeable head, plus the usual freeze / unfreeze switches."""

    def __init__(self, trunk, n_out):
        super().__init__()
        self.trunk = trunk
        self.head = nn.Linear(trunk.width, n_out)

    def forward(self, x):
        return self.head(self.trunk(x))

    def freeze_trunk(self):
        for p in self.trunk.parameters():
            p.requires_grad = False
        return self

    def unfreeze_trunk(self):
        self.trunk.requires_grad = True
        return self
