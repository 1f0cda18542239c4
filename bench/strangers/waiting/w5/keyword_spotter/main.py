import logging
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

from frontend import LogMelFrontend
from trainer import Trainer

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")


class SpotterNet(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.frontend = LogMelFrontend()
        self.body = nn.Sequential(
            nn.Conv1d(40, 64, 5, padding=2), nn.BatchNorm1d(64), nn.ReLU(),
            nn.Conv1d(64, 64, 5, padding=2, stride=2), nn.BatchNorm1d(64), nn.ReLU(),
            nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(64, n_classes),
        )

    def forward(self, wav):
        return self.body(self.frontend(wav))


def fake_commands(n, n_classes=6, sr=16000, seconds=0.5):
    t = torch.arange(int(sr * seconds)) / sr
    y = torch.randint(n_classes, (n,))
    f = 250.0 * 2 ** (y / 2) * (1 + 0.02 * torch.randn(n))
    gain = torch.rand(n) * 0.7 + 0.3
    # clipped like the field recordings
    x = 2 * gain[:, None] * torch.sin(2 * math.pi * f[:, None] * t) + 0.05 * torch.randn(n, len(t))
    return TensorDataset(x.clamp(-1, 1), y)


if __name__ == "__main__":
    torch.manual_seed(3)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train = DataLoader(fake_commands(192), batch_size=32, shuffle=True, drop_last=True)
    val = DataLoader(fake_commands(64), batch_size=32)
    Trainer(SpotterNet(6), train, val, device=device, epochs=3).fit()
