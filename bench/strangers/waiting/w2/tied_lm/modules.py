import torch
import torch.nn as nn


class LowRankLinear(nn.Module):
    """y = U V x + b with rank r << min(in, out)."""

    def __init__(self, n_in, n_out, rank):
        super().__init__()
        self.down = nn.Linear(n_in, rank, bias=False)
        self.up = nn.Linear(rank, n_out)

    def forward(self, x):
        return self.up(self.down(x))


class FactorizedEmbedding(nn.Module):
    """ALBERT: small table, then a projection. Rows rounded up so that the kernel likes it."""

    def __init__(self, n_tokens, d_emb, d_model, multiple=64):
        super().__init__()
        rows = -(-n_tokens // multiple) * multiple
        self.table = nn.Embedding(rows, d_emb)
        self.proj = nn.Linear(d_emb, d_model, bias=False)
        nn.init.normal_(self.table.weight, std=0.1)

    def forward(self, ids):
        return self.proj(self.table(ids))

    def attend(self, h):
        return nn.functional.linear(h @ self.proj.weight, self.table.weight)


class Layer(nn.Module):
    def __init__(self, d, rank):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.ff_in = LowRankLinear(d, 4 * d, rank)
        self.ff_out = LowRankLinear(4 * d, d, rank)

    def forward(self, x):
        x = x + self.rnn(self.n1(x))[0]
        return x + self.ff_out(nn.functional.gelu(self.ff_in(self.n2(x))))


class SharedLM(nn.Module):
    def __init__(self, n_tokens, d_emb=16, d_model=64, rank=12, repeats=2):
        super().__init__()
        self.embed = FactorizedEmbedding(n_tokens, d_emb, d_model)
        self.layer = Layer(d_model, rank)
        self.repeats = repeats
        self.final = nn.LayerNorm(d_model)

    def forward(self, ids):
        h = self.embed(ids)
        for _ in range(self.repeats):
            h = self.layer(h)
        return self.embed.attend(self.final(h))
