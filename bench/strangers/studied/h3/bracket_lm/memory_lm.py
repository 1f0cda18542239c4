import torch
from torch import nn


class MemoryLM(nn.Module):
    """LSTM language model; the state lives in the module between chunks."""

    def __init__(self, n_vocab, dim):
        super().__init__()
        self.emb = nn.Embedding(n_vocab, dim)
        self.rnn = nn.LSTM(dim, dim, num_layers=2, batch_first=True)
        self.out = nn.Linear(dim, n_vocab, bias=True)
        self.out.weight = self.emb.weight
        nn.init.normal_(self.emb.weight, 0, 0.1)
        self.state = None

    def forget(self):
        self.state = None

    def cut(self):
        if self.state is not None:
            for s in self.state:
                s.detach_()

    def forward(self, ids):
        h, self.state = self.rnn(self.emb(ids), self.state)
        return self.out(h)
