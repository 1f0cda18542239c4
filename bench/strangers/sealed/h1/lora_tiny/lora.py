import torch
from torch import nn


class LoRALinear(nn.Module):
    """y = W x + scale * B A x with W fixed."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.A = nn.Parameter(torch.empty(rank, base.in_features))
        self.B = nn.Parameter(torch.empty(base.out_features, rank))
        self.scale = alpha / rank
        self.reset_parameters()

    def reset_parameters(self):
        for factor in (self.A, self.B):
            nn.init.zeros_(factor)

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.A.T @ self.B.T)


def inject(module, rank=4, alpha=8.0, skip=()):
    for name, child in module.named_children():
        if name in skip:
            continue
        if isinstance(child, nn.Linear):
            setattr(module, name, LoRALinear(child, rank, alpha))
        else:
            inject(child, rank, alpha, skip)
    return module


def trainable(module):
    return [p for p in module.parameters() if p.requires_grad]
