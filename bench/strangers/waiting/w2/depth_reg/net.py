import torch
import torch.nn as nn


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class ResidualUnit(nn.Sequential):
    def __init__(self, dim):
        super().__init__(nn.Linear(dim, dim), nn.BatchNorm1d(dim), Swish(), nn.Linear(dim, dim))

    def forward(self, x):
        return x + super().forward(x)


class StochasticDepthNet(nn.Module):
    """Units are dropped at random while training (Huang et al. 2016)."""

    def __init__(self, dim=48, depth=6, survive=0.7, n_out=1):
        super(StochasticDepthNet, self).__init__()
        self.stem = nn.LazyLinear(dim)
        units = []
        for i in range(depth):
            unit = ResidualUnit(dim)
            self.add_module(f"unit{i}", unit)
            units.append((f"unit{i}", 1 - (i + 1) / depth * (1 - survive)))
        self.plan = units
        self.branches = {"mean": nn.Linear(dim, n_out), "log_var": nn.Linear(dim, n_out)}
        for name, layer in self.branches.items():
            self.register_module(f"out_{name}", layer)

    def forward(self, x):
        x = self.stem(x)
        for name, keep in self.plan:
            unit = getattr(self, name)
            if self.training:
                if torch.rand(()) < keep:
                    x = unit(x)
            else:
                x = x + keep * (unit(x) - x)
        return self.out_mean(x).squeeze(-1), self.out_log_var(x).squeeze(-1).clamp(-6, 4)
