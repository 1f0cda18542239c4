import torch
from torch import nn


class GaitTagger(nn.Module):
    """Labels every time step of an accelerometer sequence with a gait phase."""

    def __init__(self, channels, hidden, classes):
        super().__init__()
        self.encoder = nn.GRU(channels, hidden, batch_first=True, bidirectional=True)
        self.decoder = nn.Sequential(
            nn.LayerNorm(2 * hidden), nn.Linear(2 * hidden, hidden), nn.GELU(), nn.Linear(hidden, classes)
        )

    def forward(self, x):
        h, _ = self.encoder(x)
        return self.decoder(h)
