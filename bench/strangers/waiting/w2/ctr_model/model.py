import torch
import torch.nn as nn


class CTRNet(nn.Module):
    def __init__(self, cardinalities, n_numeric, dim=8, hidden=64):
        super().__init__()
        self.n_cat = len(cardinalities)
        self.tables = nn.ModuleList(nn.Embedding(c, dim) for c in cardinalities)
        self.mlp = nn.Sequential(
            nn.Linear(self.n_cat * dim + n_numeric, hidden), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(hidden, hidden), nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, x):
        cats, nums = x[:, :self.n_cat], x[:, self.n_cat:]
        embedded = [table(cats[:, j]) for j, table in enumerate(self.tables)]
        return self.mlp(torch.cat(embedded + [nums], dim=1)).squeeze(1)
