import torch
from torch import nn
import torch.nn.functional as F


class CentredEmbedding(nn.Module):
    """Embedding whose vectors are kept around the origin by a moving mean."""

    def __init__(self, vocab, dim, momentum=0.9):
        super().__init__()
        self.table = nn.Embedding(vocab, dim)
        nn.init.normal_(self.table.weight, 0.0, 0.1)
        self.momentum = momentum
        self.register_buffer("centre", torch.zeros(dim))

    def forward(self, ids):
        vec = self.table(ids)
        if self.training:
            self.centre = self.momentum * self.centre + (1 - self.momentum) * vec.mean(0)
        return vec - self.centre


class SkipGram(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.words = CentredEmbedding(vocab, dim)
        self.context = nn.Embedding(vocab, dim)
        nn.init.normal_(self.context.weight, 0.0, 0.1)

    def forward(self, word, pos, neg):
        w = self.words(word)
        s_pos = (w * self.context(pos)).sum(-1)
        s_neg = torch.einsum("bd,bkd->bk", w, self.context(neg))
        return -(F.logsigmoid(s_pos) + F.logsigmoid(-s_neg).sum(-1)).mean()
