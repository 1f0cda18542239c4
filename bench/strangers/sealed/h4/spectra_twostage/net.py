import torch.nn as nn


class SpectrumNet(nn.Module):
    def __init__(self, bins, classes, width=128):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(bins, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
        )
        self.out = nn.Linear(width, classes)

    def forward(self, x):
        return self.out(self.body(x))
