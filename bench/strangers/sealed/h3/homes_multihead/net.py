import torch
from torch import nn


class SharedTrunk(nn.Module):
    def __init__(self, n_in, hidden):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_in, hidden), nn.SiLU(),
            nn.Linear(hidden, hidden), nn.SiLU(),
        )

    def forward(self, x):
        return self.layers(x)


class HomesNet(nn.Module):
    def __init__(self, n_in, hidden, tasks):
        super().__init__()
        self.trunk = SharedTrunk(n_in, hidden)
        self.heads = nn.ModuleDict({t: nn.Linear(hidden, 1) for t in tasks})

    def forward(self, x):
        z = self.trunk(x)
        return {t: head(z).squeeze(-1) for t, head in self.heads.items()}


class UncertaintyWeighting(nn.Module):
    """Homoscedastic weighting, Kendall et al. 2018."""

    def __init__(self, tasks):
        super().__init__()
        self.tasks = list(tasks)
        self.log_vars = nn.Parameter(torch.zeros(len(self.tasks)))

    def forward(self, task_losses):
        values = torch.tensor([task_losses[t] for t in self.tasks],
                              device=self.log_vars.device)
        precision = torch.exp(-self.log_vars)
        return (precision * values + 0.5 * self.log_vars).sum()
