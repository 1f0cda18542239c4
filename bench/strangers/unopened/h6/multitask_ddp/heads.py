import torch.nn as nn


class MultiTask(nn.Module):
    """Shared trunk, one head per sensor type; a batch holds a single type."""

    def __init__(self, n_in, types):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.heads = nn.ModuleDict({t: nn.Linear(64, 1) for t in types})

    def forward(self, x, kind):
        return self.heads[kind](self.trunk(x)).squeeze(-1)
