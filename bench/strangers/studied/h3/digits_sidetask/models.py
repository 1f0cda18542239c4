from torch import nn


class DigitsWithSideTask(nn.Module):
    """Ten-way digit head and a regression head for the amount of ink."""

    def __init__(self, width=48):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.digit = nn.Linear(width, 10)
        self.ink = nn.Linear(width, 1)

    def forward(self, x):
        z = self.stem(x)
        return self.digit(z), self.ink(z).squeeze(-1)
