import torch
from torch import nn


class DemandNet(nn.Module):
    """Entity embeddings for the categorical columns, concatenated with the numeric ones."""

    def __init__(self, cardinalities, n_numeric, hidden=(96, 48), dropout=0.05, output_bias=0.0):
        super().__init__()
        dims = [min(12, (c + 1) // 2 + 1) for c in cardinalities]
        self.embeddings = nn.ModuleList(nn.Embedding(c, d) for c, d in zip(cardinalities, dims))
        layers, width = [], sum(dims) + n_numeric
        for h in hidden:
            layers += [nn.Linear(width, h), nn.ReLU(), nn.Dropout(dropout)]
            width = h
        self.body = nn.Sequential(*layers)
        self.out = nn.Linear(width, 1)
        nn.init.constant_(self.out.bias, output_bias)  # start from the average demand

    def forward(self, cats, nums):
        parts = [emb(cats[:, i]) for i, emb in enumerate(self.embeddings)]
        x = torch.cat(parts + [nums], dim=1)
        return self.out(self.body(x)).squeeze(1)
