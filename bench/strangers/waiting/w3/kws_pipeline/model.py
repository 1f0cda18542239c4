import torch.nn as nn


class KWS(nn.Module):
    def __init__(self, n_bands=24, n_words=4):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(n_bands, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(), nn.MaxPool1d(2),
            nn.Conv1d(32, 32, 5, padding=2), nn.BatchNorm1d(32), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten())
        self.fc = nn.Linear(128, n_words)

    def forward(self, x):
        return self.fc(self.conv(x))
