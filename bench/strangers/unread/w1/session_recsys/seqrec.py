"""Next item recommendation from a user's history with self attention."""
from __future__ import annotations

import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

PAD = 0


@dataclass
class Hyper:
    n_items: int = 200
    n_users: int = 600
    max_len: int = 12
    dim: int = 32
    heads: int = 2
    batch: int = 50
    epochs: int = 3
    lr: float = 2e-3


def simulate_logs(h: Hyper, seed: int = 0) -> list[list[int]]:
    rng = random.Random(seed)
    logs = []
    for _ in range(h.n_users):
        item = rng.randrange(1, h.n_items + 1)
        log = [item]
        while rng.random() < 0.85 and len(log) < 20:
            item = (item * 3 + rng.randrange(4)) % h.n_items + 1
            log.append(item)
        logs.append(log)
    return logs


class LeaveLastOut(Dataset):
    def __init__(self, logs: list[list[int]], max_len: int) -> None:
        self.logs, self.max_len = logs, max_len

    def __len__(self) -> int:
        return len(self.logs)

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        *history, nxt = self.logs[i]
        history = history[-self.max_len:]
        row = torch.full((self.max_len,), PAD)
        row[:len(history)] = torch.tensor(history, dtype=torch.long)
        return row, nxt


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        score = q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5
        score = score.masked_fill(~keep[:, None, None, :], float("-inf"))
        return self.proj((score.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d))


class SeqRec(nn.Module):
    def __init__(self, h: Hyper) -> None:
        super().__init__()
        self.items = nn.Embedding(h.n_items + 1, h.dim, padding_idx=PAD)
        with torch.no_grad():
            self.items.weight.mul_(0.1)
        self.pos = nn.Parameter(0.02 * torch.randn(h.max_len, h.dim))
        self.attn, self.norm = Attention(h.dim, h.heads), nn.LayerNorm(h.dim)
        self.ff = nn.Sequential(nn.LayerNorm(h.dim), nn.Linear(h.dim, 4 * h.dim), nn.GELU(), nn.Linear(4 * h.dim, h.dim))
        self.bias = nn.Parameter(torch.zeros(h.n_items + 1))

    def forward(self, hist: Tensor) -> Tensor:
        keep = hist != PAD
        x = self.items(hist) + self.pos
        x = x + self.attn(self.norm(x), keep)
        x = x + self.ff(x)
        pooled = (x * keep.unsqueeze(-1)).sum(1) / keep.sum(1, keepdim=True).clamp(min=1)
        return pooled @ self.items.weight.T + self.bias


@torch.no_grad()
def hit_rate(model: SeqRec, loader: DataLoader, k: int = 10) -> float:
    model.eval()
    hits = sum((model(h).topk(k).indices == y[:, None]).any(1).sum().item() for h, y in loader)
    return hits / len(loader.dataset)


def main() -> None:
    h = Hyper()
    torch.manual_seed(0)
    logs = simulate_logs(h)
    train = DataLoader(LeaveLastOut(logs[:500], h.max_len), h.batch, shuffle=True)
    valid = DataLoader(LeaveLastOut(logs[500:], h.max_len), h.batch)
    model = SeqRec(h)
    opt = torch.optim.Adam(model.parameters(), lr=h.lr)
    for epoch in range(h.epochs):
        model.train()
        total = 0.0
        for hist, nxt in train:
            loss = F.cross_entropy(model(hist), nxt)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(nxt)
        print(f"epoch {epoch} loss {total / len(train.dataset):.3f} HR@10 {hit_rate(model, valid):.3f}")


if __name__ == "__main__":
    main()
