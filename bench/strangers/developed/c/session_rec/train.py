"""Next-click prediction: the candidate context attends over what the visitor clicked before."""
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

ITEMS, CATS, MAX_HIST = 80, 8, 12
cat_of = np.arange(1, ITEMS + 1) % CATS


class Visits(Dataset):
    """Rows of (landing category, previous clicks, next click). New visitors come with an empty history."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.rows = []
        for _ in range(n):
            taste = int(rng.integers(CATS))
            pool = np.where(cat_of == taste)[0] + 1
            hist = rng.choice(pool, size=int(rng.integers(0, MAX_HIST + 1)))
            landing = taste if rng.random() < 0.7 else int(rng.integers(CATS))
            self.rows.append((landing, hist, int(rng.choice(pool))))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    landing = torch.tensor([r[0] for r in rows])
    nxt = torch.tensor([r[2] - 1 for r in rows])
    hist = torch.zeros(len(rows), MAX_HIST, dtype=torch.long)
    for i, (_, h, _) in enumerate(rows):
        hist[i, :len(h)] = torch.from_numpy(h)
    return landing, hist, nxt


class HistoryAttention(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.h, self.dk = heads, dim // heads
        self.q, self.kv, self.o = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)

    def forward(self, query, keys, valid):
        b, n, d = keys.shape
        q = self.q(query).view(b, self.h, 1, self.dk)
        k, v = self.kv(keys).view(b, n, 2, self.h, self.dk).permute(2, 0, 3, 1, 4)
        logits = q @ k.transpose(-1, -2) / math.sqrt(self.dk)
        logits = logits.masked_fill(~valid[:, None, None, :], float("-inf"))
        return self.o((logits.softmax(-1) @ v).reshape(b, d))


class Recommender(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.item = nn.Embedding(ITEMS + 1, dim, padding_idx=0)
        self.cat = nn.Embedding(CATS, dim)
        self.att = HistoryAttention(dim)
        self.ff = nn.Sequential(nn.LayerNorm(2 * dim), nn.Linear(2 * dim, 64), nn.GELU(), nn.Linear(64, ITEMS))

    def forward(self, landing, hist):
        c = self.cat(landing)
        return self.ff(torch.cat([c, self.att(c, self.item(hist), hist > 0)], -1))


def train():
    torch.manual_seed(6)
    dl = DataLoader(Visits(1500, 1), 64, shuffle=True, collate_fn=collate)
    held = DataLoader(Visits(300, 2), 100, collate_fn=collate)
    net = Recommender()
    opt = torch.optim.Adam(net.parameters(), 3e-3)
    for ep in range(3):
        net.train()
        run = 0.0
        for landing, hist, nxt in dl:
            loss = F.cross_entropy(net(landing, hist), nxt)
            opt.zero_grad()
            loss.backward()
            opt.step()
            run += loss.item()
        net.eval()
        hits = 0
        with torch.no_grad():
            for landing, hist, nxt in held:
                hits += (net(landing, hist).topk(10).indices == nxt[:, None]).any(1).sum().item()
        print(f"epoch {ep}: loss {run / len(dl):.3f} hit@10 {hits / 300:.3f}")


if __name__ == "__main__":
    train()
