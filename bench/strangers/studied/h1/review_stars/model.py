import torch
from torch import nn


class StarClassifier(nn.Module):
    def __init__(self, vocab, emb_dim, hidden, n_out=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb_dim, padding_idx=0)
        self.ff = nn.Sequential(nn.Linear(emb_dim, hidden), nn.ReLU(), nn.Linear(hidden, n_out))

    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1)
        pooled = (self.emb(ids) * mask).sum(1) / mask.sum(1).clamp(min=1)
        return self.ff(pooled)
