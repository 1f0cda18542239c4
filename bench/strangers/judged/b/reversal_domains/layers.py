import torch
from torch import nn


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.lam * g, None


class Reverse(nn.Module):
    lam = 0.0

    def forward(self, x):
        return _Reverse.apply(x, self.lam)


class RoundSTE(torch.autograd.Function):
    """rounds to a grid forward; straight-through inside the clipping range, zero outside"""

    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        return (x.clamp(-1, 1) * levels).round() / levels

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * (x.abs() <= 1), None
