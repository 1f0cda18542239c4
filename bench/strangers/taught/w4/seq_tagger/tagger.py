import torch
from torch import nn


class ConvTagger(nn.Module):
    """gated convolutions over the sentence (Dauphin et al.), quicker than the LSTM we had"""

    def __init__(self, vocab, tags, dim=64, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(dim, 2 * dim, 3, padding=1) for _ in range(layers))
        self.drop = nn.Dropout(0.2)
        self.cls = nn.Linear(dim, tags)

    def forward(self, x):
        h = self.embed(x).transpose(1, 2)
        for conv in self.convs:
            h = h + nn.functional.glu(conv(h), dim=1)
        return self.cls(self.drop(h.transpose(1, 2)))


def synthetic_corpus(n, vocab=200, tags=6, length=20, seed=0):
    """the tag depends on the word and on the class of the word before it"""
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(1, vocab, (n, length), generator=g)
    prev = torch.cat([torch.zeros(n, 1, dtype=torch.long), x[:, :-1]], 1)
    y = (x % 3) + 3 * (prev % 2)
    lens = torch.randint(8, length + 1, (n,), generator=g)
    pad = torch.arange(length)[None] >= lens[:, None]
    return x.masked_fill(pad, 0), y.masked_fill(pad, -100)
