from torch import nn


class ECGNet(nn.Module):
    def __init__(self, leads=2, classes=3, width=16):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(leads, width, 7, stride=2, padding=3), nn.GroupNorm(4, width), nn.ReLU(),
            nn.Conv1d(width, 2 * width, 5, stride=2, padding=2), nn.GroupNorm(4, 2 * width), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(),
        )
        self.fc = nn.Linear(2 * width, classes)

    def forward(self, x):
        return self.fc(self.features(x))
