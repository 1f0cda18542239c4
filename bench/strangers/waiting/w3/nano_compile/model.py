from dataclasses import asdict, dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Conf:
    vocab: int
    ctx: int = 32
    dim: int = 48

    dict = asdict


class ConvLM(nn.Module):
    """Causal convolutions, fast enough for the browser demo."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.emb = nn.Embedding(c.vocab, c.dim)
        self.convs = nn.ModuleList(nn.Conv1d(c.dim, c.dim, 3, dilation=d) for d in (1, 2, 4))
        self.out = nn.Linear(c.dim, c.vocab)

    def forward(self, idx):
        h = self.emb(idx).transpose(1, 2)
        for conv in self.convs:
            pad = 2 * conv.dilation[0]
            h = h + F.gelu(conv(F.pad(h, (pad, 0))))
        return self.out(h.transpose(1, 2))
