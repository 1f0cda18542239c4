import torch
import torch.nn as nn


class Bottleneck(nn.Module):
    def __init__(self, dim, size=8):
        super().__init__()
        self.down, self.up = nn.Linear(dim, size), nn.Linear(size, dim)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        return x + self.up(torch.relu(self.down(x)))


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.adapter = nn.Identity()

    def forward(self, x, pad):
        x = self.n1(x + self.attn(x, x, x, key_padding_mask=pad, need_weights=False)[0])
        return self.n2(x + self.adapter(self.ff(x)))


class Encoder(nn.Module):
    def __init__(self, vocab, n_labels, dim=32, depth=2):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.layers = nn.ModuleList(Layer(dim) for _ in range(depth))
        self.classifier = nn.Linear(dim, n_labels)

    def forward(self, ids):
        pad = ids == 0
        x = self.emb(ids)
        for l in self.layers:
            x = l(x, pad)
        keep = (~pad).unsqueeze(-1).float()
        return self.classifier((x * keep).sum(1) / keep.sum(1))

    def insert_adapters(self, size):
        for l in self.layers:
            l.adapter = Bottleneck(self.emb.embedding_dim, size)
        return self
