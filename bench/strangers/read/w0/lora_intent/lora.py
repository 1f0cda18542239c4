import math

import torch
from torch import nn


class LoraLinear(nn.Module):
    def __init__(self, base: nn.Linear, rank: int, alpha: float):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_down = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_up = nn.Parameter(torch.empty(base.out_features, rank))
        self.scale = alpha / math.sqrt(rank)

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.lora_down.T) @ self.lora_up.T


def inject(module: nn.Module, rank: int = 4, alpha: float = 4.0) -> nn.Module:
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, LoraLinear(child, rank, alpha))
        else:
            inject(child, rank, alpha)
    return module


def reset_adapters(module: nn.Module) -> None:
    """Start from the behaviour of the base model."""
    for name, p in module.named_parameters():
        if "lora_" in name:
            nn.init.zeros_(p)


def adapter_parameters(module: nn.Module):
    return [p for n, p in module.named_parameters() if "lora_" in n]
