import torch
from torch import nn


class CharLM(nn.Module):
    def __init__(self, vocab, dim=64):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, idx):
        h, _ = self.rnn(self.emb(idx))
        return self.out(h)


def grammar_text(n, seed=0):
    """A little random story book; the vocabulary drifts from the first to the last page."""
    g = torch.Generator().manual_seed(seed)
    nouns = ["king", "queen", "ghost", "fool", "witch", "prince", "lord", "nurse"]
    verbs = ["loves", "fears", "mocks", "slays", "greets", "mourns"]
    out, size = [], 0
    while size < n:
        page = size / n
        a = int(min(7, 8 * page * torch.rand(1, generator=g).item() + 4 * page))
        b = int(torch.randint(0, 8, (1,), generator=g))
        v = int(torch.randint(0, 6, (1,), generator=g))
        s = f"the {nouns[a]} {verbs[v]} the {nouns[b]}. "
        out.append(s)
        size += len(s)
    return "".join(out)[:n]
