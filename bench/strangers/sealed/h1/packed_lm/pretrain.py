"""nanoGPT flavoured script: manual schedule, token-weighted accumulation of variable length batches."""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

max_iters, warmup_iters, peak_lr, final_lr = 160, 12, 3e-3, 0.0
micro_batches, grad_clip = 4, 1.0
vocab, dim, ctx = 13, 48, 20


def get_lr(it):
    if it < warmup_iters:
        return peak_lr * it / warmup_iters
    t = (it - warmup_iters) / (max_iters - 1 - warmup_iters)
    return final_lr + 0.5 * (1 + math.cos(math.pi * t)) * (peak_lr - final_lr)


def progression(rng):
    start, inc = rng.randrange(12), rng.choice((1, 5))
    return [(start + i * inc) % 12 for i in range(rng.randint(8, ctx))]


def micro_batch(rng, n=16):
    rows = [progression(rng) for _ in range(n)]
    x = torch.full((n, ctx), 12)
    for i, r in enumerate(rows):
        x[i, : len(r)] = torch.tensor(r)
    inp, tgt = x[:, :-1], x[:, 1:].clone()
    tgt[tgt == 12] = -100
    return inp, tgt


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, dim), nn.Embedding(ctx, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 96, 0.0, "gelu", batch_first=True, norm_first=True)
        self.h = nn.TransformerEncoder(layer, 2, nn.LayerNorm(dim), enable_nested_tensor=False)
        self.head = nn.Linear(dim, vocab, bias=False)
        nn.init.normal_(self.wte.weight, std=0.05)
        self.head.weight = self.wte.weight

    def forward(self, x):
        t = x.size(1)
        causal = nn.Transformer.generate_square_subsequent_mask(t)
        return self.head(self.h(self.wte(x) + self.wpe(torch.arange(t)), mask=causal, is_causal=True))


def summed_loss(model, inp, tgt):
    return F.cross_entropy(model(inp).flatten(0, 1), tgt.flatten(), ignore_index=-100, reduction="sum")


torch.manual_seed(0)
rng = random.Random(0)
model = LM()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.95), weight_decay=0.05)
held_out = micro_batch(random.Random(123), 128)

for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    parts = [micro_batch(rng) for _ in range(micro_batches)]
    n_tokens = sum((tgt != -100).sum().item() for _, tgt in parts)
    total = 0.0
    for inp, tgt in parts:
        loss = summed_loss(model, inp, tgt) / n_tokens
        loss.backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % 20 == 0 or it == max_iters - 1:
        with torch.no_grad():
            val = summed_loss(model, *held_out).item() / (held_out[1] != -100).sum().item()
        print(f"iter {it:3d} lr {get_lr(it):.2e} loss {total:.4f} val {val:.4f}")
