from typing import NamedTuple

import torch
from torch import Tensor, nn


class Scale(NamedTuple):
    neighbours: int
    lift: nn.Module
    mix: nn.Module


class CloudNet(nn.Module):
    """Edge features at several neighbourhood sizes, max pooled."""

    def __init__(self, scales=(4, 8, 16), dim=32, classes=3):
        super().__init__()
        self.scales = [
            Scale(k, nn.Sequential(nn.Linear(6, dim), nn.LeakyReLU(0.1)), nn.Sequential(nn.Linear(dim, dim), nn.LeakyReLU(0.1)))
            for k in scales
        ]
        self.norm = nn.LayerNorm(dim * len(scales))
        self.classify = nn.Linear(dim * len(scales), classes)

    def forward(self, points: Tensor) -> Tensor:
        order = torch.cdist(points, points).argsort(-1)
        pooled = []
        for scale in self.scales:
            near = order[..., 1:scale.neighbours + 1]
            b = torch.arange(len(points), device=points.device)[:, None, None]
            offset = points[b, near] - points[:, :, None]
            edges = torch.cat([points[:, :, None].expand_as(offset), offset], -1)
            pooled.append(scale.mix(scale.lift(edges).amax(2)).amax(1))
        return self.classify(self.norm(torch.cat(pooled, -1)))
