import torch
from torch import nn


class BasketPool(nn.Module):
    """Attention pooling over the items of a basket. Empty baskets get a learned vector."""

    def __init__(self, dim):
        super().__init__()
        self.query = nn.Parameter(torch.randn(dim) / dim ** 0.5)
        self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.empty = nn.Parameter(torch.zeros(dim))

    def forward(self, items, present):
        nobody = ~present.any(1)
        visible = present | nobody.unsqueeze(1)
        score = (self.key(items) @ self.query).masked_fill(~visible, float("-inf"))
        pooled = (score.softmax(1).unsqueeze(-1) * self.value(items)).sum(1)
        return torch.where(nobody.unsqueeze(1), self.empty, pooled)


class SpendModel(nn.Module):
    def __init__(self, n_items, dim=24):
        super().__init__()
        self.items = nn.Embedding(n_items + 1, dim, padding_idx=0)
        self.pool = BasketPool(dim)
        self.head = nn.Sequential(nn.Linear(dim + 2, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, basket, customer):
        present = basket > 0
        z = self.pool(self.items(basket), present)
        return self.head(torch.cat([z, customer], 1))
