from torch import nn


def trunk(width=16):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
    )


class OldScannerNet(nn.Module):
    """Trained on the archive of the old scanner."""

    def __init__(self, width=16, groups=10):
        super().__init__()
        self.trunk = trunk(width)
        self.logits = nn.Linear(8 * width, groups)

    def forward(self, x):
        return self.logits(self.trunk(x))


class DigitNet(nn.Module):
    def __init__(self, width=16, classes=10):
        super().__init__()
        self.features = trunk(width)
        self.classifier = nn.Linear(8 * width, classes)

    def forward(self, x):
        return self.classifier(self.features(x))
