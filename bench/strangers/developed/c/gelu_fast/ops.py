import torch


class _ScaledSwish(torch.autograd.Function):
    """x * sigmoid(beta * x); keeps only x for backward and recomputes the gate, so it is lighter than the eager form."""

    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x)
        ctx.beta = beta
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad_out):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(ctx.beta * x)
        return grad_out * s * (1 + x * (1 - s)), None


class QuickGELU(torch.nn.Module):
    def __init__(self, beta=1.702):
        super().__init__()
        self.beta = beta

    def forward(self, x):
        return _ScaledSwish.apply(x, self.beta)

    def extra_repr(self):
        return f"beta={self.beta}"
