#!/usr/bin/env python3
# byte-level transformer LM, learns python source (its own standard library)
import glob
import math
import os

import torch
from torch import nn
from torch.nn import functional as F

ctx_len, d_model, n_layer, n_head = 64, 64, 2, 4
batch_size, max_iters, eval_every = 16, 201, 50
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(4)

files = sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), "[a-d]*.py")))[:20]
raw = b"\n".join(open(f, "rb").read() for f in files)
data = torch.frombuffer(bytearray(raw), dtype=torch.uint8).long()
cut = int(0.95 * len(data))
train_data, val_data = data[:cut], data[cut:cut + 8_000]


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(256, d_model)
        self.pos = nn.Parameter(torch.zeros(ctx_len, d_model))
        layer = nn.TransformerEncoderLayer(d_model, n_head, 4 * d_model, dropout=0.1, activation="gelu",
                                           batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, n_layer, norm=nn.LayerNorm(d_model), enable_nested_tensor=False)
        self.out = nn.Linear(d_model, 256, bias=False)
        mask = torch.triu(torch.full((ctx_len, ctx_len), float("-inf")), diagonal=1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x):
        t = x.size(1)
        h = self.tok(x) + self.pos[:t]
        return self.out(self.enc(h, mask=self.mask[:t, :t], is_causal=True))


def random_batch():
    ix = torch.randint(len(train_data) - ctx_len - 1, (batch_size,))
    xy = torch.stack([train_data[i:i + ctx_len + 1] for i in ix]).to(dev)
    return xy[:, :-1], xy[:, 1:]


def perplexity(lm, stream):
    """full pass over the held-out bytes"""
    with torch.no_grad():
        lm.eval()
    n_win = (len(stream) - 1) // ctx_len
    xs = stream[:n_win * ctx_len].view(n_win, ctx_len)
    ys = stream[1:n_win * ctx_len + 1].view(n_win, ctx_len)
    nll = 0.0
    for xb, yb in zip(xs.split(32), ys.split(32)):
        logits = lm(xb.to(dev))
        nll += F.cross_entropy(logits.flatten(0, 1), yb.to(dev).flatten(), reduction="sum").item()
    lm.train()
    return math.exp(nll / ys.numel())


lm = LM().to(dev)
opt = torch.optim.AdamW(lm.parameters(), lr=1e-3, weight_decay=0.05)
print(sum(p.numel() for p in lm.parameters()) // 1000, "k parameters")

lm.train()
for it in range(max_iters):
    x, y = random_batch()
    loss = F.cross_entropy(lm(x).flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
    opt.step()
    if it % eval_every == 0:
        print(f"{it:5d} | train loss {loss.item():.3f} | val ppl {perplexity(lm, val_data):.2f}")

torch.save(lm.state_dict(), "/tmp/bytelm.pt")
