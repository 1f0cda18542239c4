# nanoGPT-ish, own tokenizer, checkpoint with everything in it
import math
import os
import random
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

OUT = sys.argv[1] if len(sys.argv) > 1 else "/tmp/w3_poems.pt"
ctx, bs, dim, heads, layers = 32, 16, 32, 4, 2
max_iters, warmup, max_lr, min_lr, eval_every = 120, 20, 3e-3, 3e-4, 40
torch.manual_seed(0)

r = random.Random(1)
lines = [" ".join(r.choice(["moon", "sea", "wind", "stone", "bird", "night", "rose"]) for _ in range(5)) for _ in range(800)]
text = "\n".join(lines)
itos = sorted(set(text))
ids = torch.tensor([itos.index(c) for c in text])
cut = int(len(ids) * 0.9)
parts = {"train": ids[:cut], "val": ids[cut:]}


def get_batch(which):
    d = parts[which]
    at = torch.randint(len(d) - ctx - 1, (bs,))
    return torch.stack([d[i:i + ctx] for i in at]), torch.stack([d[i + 1:i + 1 + ctx] for i in at])


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(len(itos), dim), nn.Embedding(ctx, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, dropout=0.1, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, norm=nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, len(itos), bias=False)
        self.head.weight = self.tok.weight
        nn.init.normal_(self.tok.weight, std=0.1)
        nn.init.normal_(self.pos.weight, std=0.1)

    def forward(self, x):
        t = x.size(1)
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        return self.head(self.enc(self.tok(x) + self.pos.weight[:t], mask=mask, is_causal=True))


def lr_at(it):
    if it < warmup:
        return max_lr * (it + 1) / warmup
    q = (it - warmup) / max(1, max_iters - warmup)
    return min_lr + 0.5 * (1 + math.cos(math.pi * min(q, 1.0))) * (max_lr - min_lr)


@torch.no_grad()
def estimate(model, n=8):
    model.eval()
    res = {}
    for which in parts:
        tot = 0.0
        for _ in range(n):
            x, y = get_batch(which)
            tot += F.cross_entropy(model(x).transpose(1, 2), y).item()
        res[which] = tot / n
    model.train()
    return res


model = LM()
opt = torch.optim.AdamW(model.parameters(), lr=max_lr, betas=(0.9, 0.95))
it, best = 0, 1e9
if os.path.exists(OUT):
    ck = torch.load(OUT)
    model.load_state_dict(ck["model"])
    opt.load_state_dict(ck["opt"])
    torch.set_rng_state(ck["rng"])
    it, best = ck["it"], ck["best"]

model.train()
while it < max_iters:
    for g in opt.param_groups:
        g["lr"] = lr_at(it)
    x, y = get_batch("train")
    loss = F.cross_entropy(model(x).transpose(1, 2), y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    it += 1
    if it % eval_every == 0:
        e = estimate(model)
        print(f"{it} lr {lr_at(it):.5f} train {e['train']:.3f} val {e['val']:.3f}")
        best = min(best, e["val"])
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "it": it, "best": best,
                    "rng": torch.get_rng_state()}, OUT)
