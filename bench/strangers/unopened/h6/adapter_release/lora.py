import torch
import torch.nn as nn


class LoRA(nn.Module):
    def __init__(self, inner: nn.Linear, rank: int):
        super().__init__()
        self.inner = inner.requires_grad_(False)
        self.a = nn.Linear(inner.in_features, rank, bias=False)
        self.b = nn.Linear(rank, inner.out_features, bias=False)
        nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return self.inner(x) + self.b(self.a(x))


def wrap_linears(module: nn.Module, rank: int) -> nn.Module:
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear):
            setattr(module, name, LoRA(child, rank))
        else:
            wrap_linears(child, rank)
    return module


def save_adapter(model: nn.Module, path: str) -> None:
    """Write only the weights that were tuned; the base model is distributed separately."""
    small = {k: v for k, v in model.state_dict().items() if v.requires_grad}
    torch.save(small, path)


def load_adapter(model: nn.Module, path: str) -> nn.Module:
    model.load_state_dict(torch.load(path, weights_only=True), strict=False)
    return model
