import math
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    vocab: int = 14          # 0 pad, 1 '=', 2 end, 3.. digits
    dim: int = 64
    heads: int = 4
    layers: int = 2
    ctx: int = 32


PAD, EQ, END = 0, 1, 2


class CausalAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.qkv = nn.Linear(c.dim, 3 * c.dim)
        self.o = nn.Linear(c.dim, c.dim)

    def forward(self, x, keep):
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.c.heads, -1).permute(2, 0, 3, 1, 4)
        s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        allowed = torch.tril(torch.ones(T, T, dtype=torch.bool, device=x.device)) & keep[:, None, None, :]
        s = s.masked_fill(~allowed, torch.finfo(s.dtype).min)
        return self.o((s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.wte, self.wpe = nn.Embedding(c.vocab, c.dim), nn.Embedding(c.ctx, c.dim)
        self.attn = nn.ModuleList(CausalAttention(c) for _ in range(c.layers))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(c.dim, 4 * c.dim), nn.GELU(), nn.Linear(4 * c.dim, c.dim)) for _ in range(c.layers))
        self.ln = nn.ModuleList(nn.LayerNorm(c.dim) for _ in range(2 * c.layers + 1))
        self.lm_head = nn.Linear(c.dim, c.vocab, bias=False)

    def forward(self, ids, keep):
        pos = torch.arange(ids.shape[1], device=ids.device)
        x = self.wte(ids) + self.wpe(pos)
        for i in range(self.c.layers):
            x = x + self.attn[i](self.ln[2 * i](x), keep)
            x = x + self.mlp[i](self.ln[2 * i + 1](x))
        return self.lm_head(self.ln[-1](x))

    @torch.no_grad()
    def generate(self, prompts, max_new):
        width = max(map(len, prompts))
        ids = torch.tensor([[PAD] * (width - len(p)) + p for p in prompts])
        keep = ids != PAD
        done = torch.zeros(len(prompts), dtype=torch.bool)
        for _ in range(max_new):
            nxt = self(ids, keep)[:, -1].argmax(-1)
            nxt[done] = PAD
            done |= nxt == END
            ids = torch.cat([ids, nxt[:, None]], 1)
            keep = torch.cat([keep, torch.ones(len(prompts), 1, dtype=torch.bool)], 1)
            if done.all():
                break
        return [[t for t in row[width:].tolist() if t > END] for row in ids]


def task(rng):
    digits = [rng.randint(3, 12) for _ in range(rng.randint(2, 9))]
    return digits + [EQ], sorted(digits) + [END]


def right_pad(rows):
    w = max(len(p) + len(a) for p, a in rows)
    ids = torch.full((len(rows), w), PAD)
    target = torch.full((len(rows), w), -100)
    for i, (p, a) in enumerate(rows):
        ids[i, : len(p) + len(a)] = torch.tensor(p + a)
        target[i, len(p) : len(p) + len(a)] = torch.tensor(a)
    return ids, target


def score(model, rows, size):
    hits = 0
    for i in range(0, len(rows), size):
        part = rows[i : i + size]
        hits += sum(o == a[:-1] for o, (_, a) in zip(model.generate([p for p, _ in part], 10), part))
    return hits / len(rows)


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    model = GPT(GPTConfig())
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    test = [task(rng) for _ in range(60)]
    steps = 350
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-3, total_steps=steps)
    model.train()
    for step in range(1, steps + 1):
        ids, target = right_pad([task(rng) for _ in range(48)])
        logits = model(ids[:, :-1], ids[:, :-1] != PAD)
        loss = F.cross_entropy(logits.transpose(1, 2), target[:, 1:])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        if step % 70 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    model.eval()
    print(f"sorted correctly: batch of 30 {score(model, test, 30):.2f}, one at a time {score(model, test, 1):.2f}")


if __name__ == "__main__":
    main()
