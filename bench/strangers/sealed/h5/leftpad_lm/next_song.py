"""Next-song recommender: a causal transformer over listening sessions of different length."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SONGS, PAD = 60, 0


class Sessions(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        jump = np.random.default_rng(0).permutation(SONGS)
        self.items = []
        for _ in range(n):
            s = [int(rng.integers(SONGS))]
            for _ in range(rng.integers(3, 15)):
                s.append(int(jump[s[-1]]) if rng.random() < 0.8 else int(rng.integers(SONGS)))
            self.items.append([v + 1 for v in s])

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    """Pads in front, so that the newest song is always at the last position."""
    longest = max(len(s) for s in batch)
    ids = torch.tensor([[PAD] * (longest - len(s)) + s for s in batch])
    return ids[:, :-1], ids[:, 1:]


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, visible):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        att = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads)
        att = att.masked_fill(~visible[:, None], -math.inf).softmax(-1)
        return self.proj((att @ v).transpose(1, 2).reshape(b, t, d))


class Recommender(nn.Module):
    def __init__(self, dim=32, heads=2, layers=2, max_len=20):
        super().__init__()
        self.tok = nn.Embedding(SONGS + 1, dim, padding_idx=PAD)
        self.pos = nn.Embedding(max_len, dim)
        self.att = nn.ModuleList(SelfAttention(dim, heads) for _ in range(layers))
        self.norm = nn.ModuleList(nn.LayerNorm(dim) for _ in range(layers))
        self.out = nn.Linear(dim, SONGS + 1)

    def forward(self, ids):
        t = ids.shape[1]
        causal = torch.ones(t, t, dtype=torch.bool).tril()
        visible = causal & (ids != PAD)[:, None, :]
        x = self.tok(ids) + self.pos(torch.arange(t).flip(0))
        for att, norm in zip(self.att, self.norm):
            x = x + att(norm(x), visible)
        return self.out(x)


torch.manual_seed(0)
train = DataLoader(Sessions(800, 1), batch_size=32, shuffle=True, collate_fn=collate)
test = DataLoader(Sessions(200, 2), batch_size=200, collate_fn=collate)
model = Recommender()
opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
for epoch in range(5):
    model.train()
    for inp, target in train:
        keep = inp != PAD
        loss = F.cross_entropy(model(inp)[keep], target[keep])
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        inp, target = next(iter(test))
        hit = (model(inp)[:, -1].argmax(-1) == target[:, -1]).float().mean()
    print(f"epoch {epoch} loss {loss.item():.3f} hit@1 {hit.item():.3f}")
