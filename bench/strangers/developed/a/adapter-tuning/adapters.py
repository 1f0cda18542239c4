"""Low-rank adapters for frozen linear layers."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class LowRankLinear(nn.Module):
    """y = W x + (alpha / r) * B A x   with W frozen."""

    def __init__(self, base: nn.Linear, r: int = 4, alpha: float = 8.0):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scaling = alpha / r
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.empty(base.out_features, r))
        self.reset_parameters()

    def reset_parameters(self):
        # the adapted layer has to start out identical to the pretrained one
        nn.init.zeros_(self.lora_A)
        nn.init.zeros_(self.lora_B)

    def forward(self, x):
        return self.base(x) + self.scaling * F.linear(F.linear(x, self.lora_A), self.lora_B)

    @torch.no_grad()
    def merged(self):
        out = nn.Linear(self.base.in_features, self.base.out_features, bias=self.base.bias is not None)
        out.weight.copy_(self.base.weight + self.scaling * self.lora_B @ self.lora_A)
        if self.base.bias is not None:
            out.bias.copy_(self.base.bias)
        return out


def inject(module, r=4, alpha=8.0, skip=()):
    """Replace every nn.Linear below `module` by its adapted version, in place."""
    for name, child in module.named_children():
        if name in skip:
            continue
        if isinstance(child, nn.Linear):
            setattr(module, name, LowRankLinear(child, r, alpha))
        else:
            inject(child, r, alpha, skip)
    return module


def trainable(module):
    return [p for p in module.parameters() if p.requires_grad]


def describe(module):
    n = sum(p.numel() for p in module.parameters())
    k = sum(p.numel() for p in trainable(module))
    return f"{k} of {n} parameters are trained ({100 * k / n:.1f}%, log10 {math.log10(k / n):.2f})"
