import torch
from torch import nn


class LoRALinear(nn.Module):
    """y = W x + (alpha / r) * B A x, with W kept as it was."""

    def __init__(self, base: nn.Linear, r: int = 4, alpha: float = 8.0, dropout: float = 0.0):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.empty(r, base.in_features))
        self.lora_B = nn.Parameter(torch.empty(base.out_features, r))
        self.scaling = alpha / r
        self.dropout = nn.Dropout(dropout)
        self.reset_parameters()

    def reset_parameters(self):
        # the adapted layer must start out equal to the base layer
        nn.init.zeros_(self.lora_A)
        nn.init.zeros_(self.lora_B)

    def forward(self, x):
        update = self.dropout(x) @ self.lora_A.t() @ self.lora_B.t()
        return self.base(x) + self.scaling * update

    @torch.no_grad()
    def merge(self) -> nn.Linear:
        self.base.weight += self.scaling * self.lora_B @ self.lora_A
        return self.base


def inject(module: nn.Module, r: int, alpha: float, skip=()):
    for name, child in module.named_children():
        if name in skip:
            continue
        if isinstance(child, nn.Linear):
            setattr(module, name, LoRALinear(child, r, alpha))
        else:
            inject(child, r, alpha, skip)
    return module


def trainable(module: nn.Module):
    return [p for p in module.parameters() if p.requires_grad]
