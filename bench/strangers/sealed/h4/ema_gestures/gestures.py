import torch
import torch.nn as nn
import torch.nn.functional as F


def record(n, seed, length=48, channels=3, kinds=5):
    g = torch.Generator().manual_seed(seed)
    t = torch.linspace(0, 6.28, length)
    y = torch.randint(0, kinds, (n,), generator=g)
    freq = 1.0 + y.float() * 0.5
    phase = torch.rand(n, channels, 1, generator=g) * 6.28
    x = torch.sin(freq[:, None, None] * t + phase) + 0.6 * torch.randn(n, channels, length, generator=g)
    return x, y


class GestureNet(nn.Module):
    def __init__(self, channels=3, kinds=5):
        super().__init__()
        self.conv1 = nn.Conv1d(channels, 32, 7, padding=3)
        self.bn1 = nn.BatchNorm1d(32)
        self.conv2 = nn.Conv1d(32, 64, 5, padding=2)
        self.bn2 = nn.BatchNorm1d(64)
        self.drop = nn.Dropout(0.6)
        self.fc = nn.Linear(64 * 12, kinds)

    def forward(self, x):
        x = F.max_pool1d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool1d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(self.drop(x.flatten(1)))
