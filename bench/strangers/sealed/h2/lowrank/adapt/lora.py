import torch
from torch import nn


class LoRALinear(nn.Module):
    """y = W x + (alpha / r) B A x with W frozen. B starts at zero."""

    def __init__(self, base: nn.Linear, rank: int, alpha: float):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * self.up(self.down(x))

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.scale * self.up.weight @ self.down.weight
        return self.base


def inject(model, rank, alpha):
    for name, child in list(model.named_children()):
        if isinstance(child, nn.Linear):
            setattr(model, name, LoRALinear(child, rank, alpha))
        else:
            inject(child, rank, alpha)
    return model


def merge_all(model):
    for name, child in list(model.named_children()):
        if isinstance(child, LoRALinear):
            setattr(model, name, child.merge())
        else:
            merge_all(child)
    return model
