"""Byte-level GRU-free LM (causal conv) with large virtual batches."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

CTX, MICRO, ACCUM, EPOCHS, PEAK_LR, WARMUP = 24, 16, 4, 4, 4e-3, 10
TEXT = ("in the beginning there was a loop and the loop was slow, so someone unrolled it. "
        "then there was a cache and the cache was cold, so someone warmed it. ") * 40


class CausalConv(nn.Module):
    def __init__(self, d, k=5):
        super().__init__()
        self.k, self.norm, self.conv = k, nn.LayerNorm(d), nn.Conv1d(d, 2 * d, k)

    def forward(self, x):
        h = F.pad(self.norm(x).transpose(1, 2), (self.k - 1, 0))
        return x + F.glu(self.conv(h), dim=1).transpose(1, 2)


class ConvLM(nn.Module):
    def __init__(self, vocab, d=64, depth=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.blocks = nn.Sequential(*[CausalConv(d) for _ in range(depth)])
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)
        nn.init.normal_(self.emb.weight, std=0.02)
        self.head.weight = self.emb.weight

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.emb(x))))


def param_groups(model, wd):
    decay, rest = [], []
    for p in model.parameters():
        (decay if p.dim() >= 2 else rest).append(p)
    return [{"params": decay, "weight_decay": wd}, {"params": rest, "weight_decay": 0.0}]


def main():
    torch.manual_seed(0)
    chars = sorted(set(TEXT))
    ids = torch.tensor([chars.index(c) for c in TEXT])
    chunks = ids.unfold(0, CTX + 1, 4)
    cut = int(0.9 * len(chunks))
    train = DataLoader(TensorDataset(chunks[:cut]), MICRO, shuffle=True)
    val = chunks[cut + CTX // 4 + 1:]

    model = ConvLM(len(chars))
    opt = torch.optim.AdamW(param_groups(model, 0.1), lr=PEAK_LR, betas=(0.9, 0.95))
    updates = EPOCHS * math.ceil(len(train) / ACCUM)
    sched = torch.optim.lr_scheduler.LambdaLR(
        opt, lambda s: (s + 1) / WARMUP if s < WARMUP else 0.55 + 0.45 * math.cos(math.pi * (s - WARMUP) / (updates - WARMUP)))

    n_batches = len(train)
    for epoch in range(EPOCHS):
        model.train()
        running = 0.0
        for i, (b,) in enumerate(train):
            group_start = i - i % ACCUM
            group = min(ACCUM, n_batches - group_start)
            loss = F.cross_entropy(model(b[:, :-1]).flatten(0, 1), b[:, 1:].flatten())
            (loss / group).backward()
            running += loss.item()
            if (i + 1) % ACCUM == 0 or i + 1 == n_batches:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad(set_to_none=True)
        model.eval()
        with torch.no_grad():
            v = F.cross_entropy(model(val[:, :-1]).flatten(0, 1), val[:, 1:].flatten()).item()
        print(f"epoch {epoch} train {running / n_batches:.3f} val {v:.3f} lr {sched.get_last_lr()[0]:.2e}")


if __name__ == "__main__":
    main()
