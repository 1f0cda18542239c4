import math

import torch
from torch import nn


class LoRALinear(nn.Module):
    """W x + (alpha / r) B A x with a frozen W (Hu et al., 2021)."""

    def __init__(self, base: nn.Linear, r: int = 4, alpha: int = 8, dropout: float = 0.0):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.r = r
        self.scaling = alpha / r
        self.dropout = nn.Dropout(dropout)
        self.lora_A = nn.Parameter(torch.zeros(r, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))

    def forward(self, x):
        delta = self.dropout(x) @ self.lora_A.T @ self.lora_B.T
        return self.base(x) + self.scaling * delta

    @torch.no_grad()
    def merge(self) -> nn.Linear:
        self.base.weight += self.scaling * (self.lora_B @ self.lora_A)
        return self.base


def inject(model: nn.Module, targets=("query", "value"), **kw) -> int:
    """Replace every nn.Linear whose attribute name is in `targets`."""
    count = 0
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and name in targets:
                setattr(module, name, LoRALinear(child, **kw))
                count += 1
    return count


def mark_only_lora(model: nn.Module, also=("classifier",)):
    for n, p in model.named_parameters():
        p.requires_grad_("lora_" in n or any(n.startswith(a) for a in also))


def summary(model):
    train = sum(p.numel() for p in model.parameters() if p.requires_grad)
    total = sum(p.numel() for p in model.parameters())
    return f"trainable {train} / {total} ({100 * train / total:.2f}%)"
