"""The preprocessing layers of our old Keras model, rewritten for PyTorch."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Rescaling(nn.Module):
    def __init__(self, scale, offset=0.0):
        super().__init__()
        self.scale, self.offset = scale, offset

    def forward(self, x):
        return x * self.scale + self.offset


class RandomRotation(nn.Module):
    """factor: fraction of a full turn, sampled per image in [-factor, factor]"""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        angle = (torch.rand(len(x), device=x.device) * 2 - 1) * self.factor * 2 * math.pi
        cos, sin = angle.cos(), angle.sin()
        zero = torch.zeros_like(cos)
        theta = torch.stack([torch.stack([cos, -sin, zero], 1), torch.stack([sin, cos, zero], 1)], 1)
        return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)


class RandomTranslation(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        shift = (torch.rand(len(x), 2, device=x.device) * 2 - 1) * self.factor * 2
        eye = torch.eye(2, device=x.device).expand(len(x), 2, 2)
        theta = torch.cat([eye, shift.unsqueeze(2)], 2)
        return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)
