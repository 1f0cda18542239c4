import torch
from torch import nn


class NextWord(nn.Module):
    """Bigram-ish language model whose vocabulary can grow while it lives."""

    def __init__(self, vocab, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.mix = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tokens):
        h, _ = self.mix(self.emb(tokens))
        return self.out(h)

    @torch.no_grad()
    def extend_vocab(self, extra):
        """Add `extra` words; old rows keep their weights, new rows start near the mean."""
        old_e, old_o = self.emb, self.out
        n, d = old_e.weight.shape
        emb, out = nn.Embedding(n + extra, d), nn.Linear(d, n + extra)
        emb.weight[:n] = old_e.weight
        emb.weight[n:] = old_e.weight.mean(0) + 0.02 * torch.randn(extra, d)
        out.weight[:n], out.bias[:n] = old_o.weight, old_o.bias
        out.weight[n:], out.bias[n:] = old_o.weight.mean(0), old_o.bias.mean()
        self.emb, self.out = emb, out
        return self
