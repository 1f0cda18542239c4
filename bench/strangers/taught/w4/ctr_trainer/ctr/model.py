import torch
from torch import nn


class DeepFM(nn.Module):
    def __init__(self, field_sizes, dim=8, hidden=(64, 32)):
        super().__init__()
        offsets = torch.tensor([0] + list(field_sizes[:-1])).cumsum(0)
        self.register_buffer("offsets", offsets)
        total = sum(field_sizes)
        self.linear = nn.Embedding(total, 1)
        self.embed = nn.Embedding(total, dim)
        nn.init.normal_(self.embed.weight, std=0.05)
        nn.init.zeros_(self.linear.weight)
        layers, d = [], dim * len(field_sizes)
        for h in hidden:
            layers += [nn.Linear(d, h), nn.ReLU(), nn.Dropout(0.1)]
            d = h
        self.deep = nn.Sequential(*layers, nn.Linear(d, 1))

    def forward(self, x):
        x = x + self.offsets
        e = self.embed(x)
        fm = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1)
        return self.linear(x).sum((1, 2)) + fm + self.deep(e.flatten(1)).squeeze(1)
