import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self, dim, tokens):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tok = nn.Linear(tokens, tokens)
        self.ch1, self.ch2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        x = x + self.tok(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.ch2(torch.relu(self.ch1(self.norm2(x))))


class SequenceModel(nn.Module):
    def __init__(self, vocab=12, tokens=8, dim=32, depth=2, n_out=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.blocks = nn.Sequential(*[Mixer(dim, tokens) for _ in range(depth)])
        self.out = nn.Linear(dim, n_out)

    def forward(self, ids):
        return self.out(self.blocks(self.emb(ids)).mean(1))
