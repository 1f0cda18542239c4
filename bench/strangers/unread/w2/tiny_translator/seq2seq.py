"""Digit-reversal 'translation' with an encoder-decoder transformer.

usage: python seq2seq.py [key=value ...]
"""
import contextlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

cfg = dict(dim=64, heads=4, layers=2, lr=5e-5, steps=120, batch=64, seed=3, precision="bf16", eval_every=40)
for item in sys.argv[1:]:
    key, value = item.split("=", 1)
    cfg[key] = type(cfg[key])(value)

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
BOS, EOS, PAD, V, L = 10, 11, 12, 13, 8


@contextlib.contextmanager
def precision(name):
    previous = torch.get_default_dtype()
    torch.set_default_dtype(DTYPES[name])
    try:
        yield
    finally:
        torch.set_default_dtype(previous)


class Translator(nn.Module):
    def __init__(self, dim, heads, layers):
        super().__init__()
        self.src, self.tgt = nn.Embedding(V, dim), nn.Embedding(V, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(1, L + 2, dim))
        self.core = nn.Transformer(dim, heads, layers, layers, 2 * dim, dropout=0.0, batch_first=True)
        self.out = nn.Linear(dim, V)

    def forward(self, src, tgt):
        t = tgt.size(1)
        causal = torch.ones(t, t, dtype=torch.bool, device=tgt.device).triu(1)
        s = self.src(src) + self.pos[:, : src.size(1)]
        g = self.tgt(tgt) + self.pos[:, :t]
        return self.out(self.core(s, g, tgt_mask=causal))


def batch(n, gen):
    src = torch.randint(0, 10, (n, L), generator=gen)
    body = src.flip(1)
    tgt = torch.cat([torch.full((n, 1), BOS), body, torch.full((n, 1), EOS)], 1)
    return src, tgt


def step_loss(model, src, tgt):
    logits = model(src, tgt[:, :-1])
    return F.cross_entropy(logits.float().flatten(0, 1), tgt[:, 1:].flatten())


def main():
    torch.manual_seed(cfg["seed"])
    gen = torch.Generator().manual_seed(cfg["seed"])
    val = batch(128, torch.Generator().manual_seed(999))
    with precision(cfg["precision"]):
        model = Translator(cfg["dim"], cfg["heads"], cfg["layers"])
    opt = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], betas=(0.9, 0.98), weight_decay=0.01)
    for step in range(1, cfg["steps"] + 1):
        model.train()
        loss = step_loss(model, *batch(cfg["batch"], gen))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % cfg["eval_every"] == 0:
            model.eval()
            with torch.no_grad():
                print(f"step {step} loss {loss.item():.4f} val {step_loss(model, *val).item():.4f}")


if __name__ == "__main__":
    main()
