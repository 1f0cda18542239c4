import torch
from torch import nn


class MixtureOfClassifiers(nn.Module):
    """p(y|x) = sum_k g_k(x) softmax(f_k(x)); returns log p(y|x)."""

    def __init__(self, n_in, n_classes, n_experts=4, width=24):
        super().__init__()
        self.experts = nn.ModuleDict({
            f"expert{k}": nn.Sequential(nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, n_classes))
            for k in range(n_experts)
        })
        self.gate = nn.Linear(n_in, n_experts)

    def forward(self, x):
        gate = torch.softmax(self.gate(x), dim=-1)
        votes = torch.stack([torch.softmax(e(x), dim=-1) for e in self.experts.values()], dim=1)
        return torch.einsum("bk,bkc->bc", gate, votes).clamp_min(1e-8).log()

    def usage(self, x):
        return torch.softmax(self.gate(x), dim=-1).mean(0)
