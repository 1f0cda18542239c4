import torch
from torch import nn


class _Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.strength * g, None


class GradientReversal(nn.Module):
    def forward(self, x, strength):
        return _Reverse.apply(x, strength)
