"""Small decoder LM, bf16 autocast, checkpoint for serving is exported in half precision."""
import argparse
import copy
import math
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.h, -1).transpose(1, 2) for z in self.qkv(self.ln1(x)).chunk(3, -1))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class LM(nn.Module):
    def __init__(self, vocab, d=64, layers=2, heads=4, ctx=48):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, d), nn.Embedding(ctx, d)
        self.blocks = nn.Sequential(*[Block(d, heads) for _ in range(layers)])
        self.ln = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)
        nn.init.normal_(self.tok.weight, std=0.02)
        nn.init.normal_(self.pos.weight, std=0.02)
        self.head.weight = self.tok.weight

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight[:ids.size(1)]
        return self.head(self.ln(self.blocks(x)))


def batches(data, n, ctx, device):
    while True:
        i = torch.randint(len(data) - ctx - 1, (n,))
        chunk = torch.stack([data[j:j + ctx + 1] for j in i]).to(device, non_blocking=True)
        yield chunk[:, :-1], chunk[:, 1:]


def loss_fn(model, x, y, device):
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = model(x)
    return F.cross_entropy(logits.float().flatten(0, 1), y.flatten())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=150)
    ap.add_argument("--accum", type=int, default=2)
    ap.add_argument("--out", type=Path, default=Path("/tmp/lm_export.pt"))
    a = ap.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    text = " ".join(f"{i} squared is {i * i}." for i in range(3000)).encode()
    data = torch.tensor(list(text))
    cut = int(0.9 * len(data))
    train, val = batches(data[:cut], 16, 48, device), batches(data[cut:], 32, 48, device)

    model = LM(128).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1, (s + 1) / 20) * 0.5 * (1 + math.cos(math.pi * s / a.steps)))

    running = torch.zeros((), device=device)
    for step in range(1, a.steps + 1):
        model.train()
        for _ in range(a.accum):
            loss = loss_fn(model, *next(train), device)
            (loss / a.accum).backward()
            running += loss.detach() / a.accum
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        opt.zero_grad(set_to_none=True)
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                v = torch.stack([loss_fn(model, *next(val), device) for _ in range(5)]).mean()
            print(f"step {step} train {running.item() / 50:.3f} val {v.item():.3f}")
            running.zero_()

    serving = copy.deepcopy(model).half().eval()
    torch.save(serving.state_dict(), a.out)
    print("exported", a.out, next(serving.parameters()).dtype)


if __name__ == "__main__":
    main()
