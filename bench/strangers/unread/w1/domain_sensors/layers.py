import torch
from torch.autograd import Function
from torch import nn


class _Reverse(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return -ctx.strength * grad_output, None


class ReverseGradient(nn.Module):
    """Identity forwards; backwards the feature extractor is pushed away from the domain classifier's goal."""

    def __init__(self):
        super().__init__()
        self.strength = 0.0

    def forward(self, x):
        return _Reverse.apply(x, self.strength)


class DANN(nn.Module):
    def __init__(self, n_in, n_classes, h=48):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(n_in, h), nn.ReLU(), nn.Linear(h, h), nn.ReLU())
        self.classify = nn.Linear(h, n_classes)
        self.reverse = ReverseGradient()
        self.domain = nn.Sequential(nn.Linear(h, h), nn.ReLU(), nn.Linear(h, 1))

    def forward(self, x):
        f = self.features(x)
        return self.classify(f), self.domain(self.reverse(f)).squeeze(-1)
