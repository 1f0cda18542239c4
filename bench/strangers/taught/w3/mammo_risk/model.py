import torch.nn as nn


class RiskNet(nn.Module):
    def __init__(self, n_in, hidden=96, p=0.1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_in, hidden), nn.GELU(), nn.Dropout(p),
            nn.Linear(hidden, hidden), nn.GELU(), nn.Dropout(p))
        self.out = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.out(self.body(x))
