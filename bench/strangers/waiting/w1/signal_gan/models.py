import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, z=12, length=64):
        super().__init__()
        self.fc = nn.Linear(z, 32 * (length // 4))
        self.net = nn.Sequential(
            nn.BatchNorm1d(32), nn.ReLU(),
            nn.ConvTranspose1d(32, 16, 4, 2, 1), nn.BatchNorm1d(16), nn.ReLU(),
            nn.ConvTranspose1d(16, 1, 4, 2, 1), nn.Tanh(),
        )

    def forward(self, z):
        return self.net(self.fc(z).view(z.size(0), 32, -1))


class GlobalD(nn.Module):
    def __init__(self, length=64):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(length, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))

    def forward(self, x):
        return self.net(x)


class PatchD(nn.Module):
    """Judges overlapping windows, sees only local structure."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, 16, 5, 2, 2), nn.LeakyReLU(0.2),
            nn.Conv1d(16, 32, 5, 2, 2), nn.LeakyReLU(0.2),
            nn.Conv1d(32, 1, 3, 1, 1),
        )

    def forward(self, x):
        return self.net(x)
