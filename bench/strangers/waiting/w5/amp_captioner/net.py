import torch
import torch.nn as nn


class MaskedAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.q, self.kv, self.o = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)

    def forward(self, x, mem, blocked):
        b, t, d = x.shape
        q = self.q(x).view(b, t, self.h, -1).transpose(1, 2)
        k, v = self.kv(mem).view(b, mem.size(1), 2, self.h, -1).permute(2, 0, 3, 1, 4)
        s = q @ k.transpose(-1, -2) * q.size(-1) ** -0.5
        s = s.masked_fill(blocked, torch.finfo(s.dtype).min)
        return self.o((s.softmax(-1).to(v.dtype) @ v).transpose(1, 2).reshape(b, t, d))


class StatsPool(nn.Module):
    """mean and deviation of the image features; squares are taken in full precision"""

    def forward(self, f):
        with torch.autocast(f.device.type, enabled=False):
            f = f.float()
            mean = f.mean(1)
            std = ((f - mean.unsqueeze(1)) ** 2).mean(1).add(1e-6).sqrt()
        return torch.cat([mean, std], -1)


class Captioner(nn.Module):
    def __init__(self, vocab, dim=64, max_len=12):
        super().__init__()
        self.patch = nn.Linear(48, dim)
        self.pool = StatsPool()
        self.start = nn.Linear(2 * dim, dim)
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(max_len, dim)
        self.self_att, self.cross_att = MaskedAttention(dim, 4), MaskedAttention(dim, 4)
        self.n1, self.n2, self.n3 = nn.LayerNorm(dim), nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, patches, words):
        f = self.patch(patches)
        t = words.size(1)
        x = self.tok(words) + self.pos.weight[:t] + self.start(self.pool(f)).unsqueeze(1)
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        n = self.n1(x)
        x = x + self.self_att(n, n, future)
        x = x + self.cross_att(self.n2(x), f, torch.zeros(1, dtype=torch.bool, device=x.device))
        return self.head(self.n3(x))
