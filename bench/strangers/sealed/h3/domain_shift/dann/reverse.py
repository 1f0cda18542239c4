import torch


class ReverseGradient(torch.autograd.Function):
    """Identity in the forward pass; the feature extractor climbs the domain loss."""

    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.strength, None


def reverse_gradient(x, strength=1.0):
    return ReverseGradient.apply(x, strength)
