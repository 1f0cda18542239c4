import torch
from torch import Tensor, nn
from torch.nn import functional as F


class NoisyOrNet(nn.Module):
    """P(bag) = 1 - prod(1 - P(tile)), taken over the real tiles only."""

    def __init__(self, dim: int, width: int = 32):
        super().__init__()
        self.tile = nn.Sequential(nn.Linear(dim, width), nn.ReLU(), nn.Linear(width, 1))
        nn.init.constant_(self.tile[-1].bias, -2.5)

    def forward(self, tiles: Tensor, real: Tensor) -> Tensor:
        log_healthy = F.logsigmoid(-self.tile(tiles).squeeze(-1))
        log_all_healthy = (log_healthy * real).sum(1)
        return -torch.expm1(log_all_healthy)


def bag_nll(probability: Tensor, label: Tensor) -> Tensor:
    return F.binary_cross_entropy(probability.clamp(1e-6, 1 - 1e-6), label)
