import math

import torch
from torch import nn


class LoRALinear(nn.Module):
    """y = W x + (alpha / r) * B A x, W frozen."""

    def __init__(self, base: nn.Linear, r=4, alpha=8):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, r, bias=False)
        self.up = nn.Linear(r, base.out_features, bias=False)
        nn.init.kaiming_uniform_(self.down.weight, a=math.sqrt(5))
        nn.init.zeros_(self.up.weight)
        self.scale = alpha / r

    def forward(self, x):
        return self.base(x) + self.scale * self.up(self.down(x))


def inject(model, targets=("query", "value"), **kw):
    model.requires_grad_(False)
    for name, mod in list(model.named_modules()):
        for child, sub in list(mod.named_children()):
            if child in targets and isinstance(sub, nn.Linear):
                setattr(mod, child, LoRALinear(sub, **kw))
    return model
