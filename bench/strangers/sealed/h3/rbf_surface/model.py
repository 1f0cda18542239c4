import torch
from torch import nn

from kernels import gaussian_bumps


class RBFNet(nn.Module):
    def __init__(self, dim, n_bumps, n_out=1, init_gamma=4.0):
        super().__init__()
        self.centres = nn.Parameter(torch.rand(n_bumps, dim) * 2 - 1)
        self.raw_gamma = nn.Parameter(torch.full((n_bumps,), init_gamma).log())
        self.readout = nn.Linear(n_bumps, n_out)

    def forward(self, x):
        return self.readout(gaussian_bumps(x, self.centres, self.raw_gamma.exp()))
