"""Encoder-only transformer that learns to sort short digit sequences (re-implementation exercise)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SelfAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.h, self.dk = heads, d_model // heads
        self.wq = nn.Linear(d_model, d_model, bias=False)
        self.wk = nn.Linear(d_model, d_model, bias=False)
        self.wv = nn.Linear(d_model, d_model, bias=False)
        self.wo = nn.Linear(d_model, d_model)

    def forward(self, x):
        b, n, d = x.shape
        split = lambda t: t.view(b, n, self.h, self.dk).transpose(1, 2)
        q, k, v = split(self.wq(x)), split(self.wk(x)), split(self.wv(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.dk)
        out = scores.softmax(-1) @ v
        return self.wo(out.transpose(1, 2).reshape(b, n, d))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, p):
        super().__init__()
        self.attn = SelfAttention(d_model, heads)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.drop = nn.Dropout(p)

    def forward(self, x):
        x = x + self.drop(self.attn(self.n1(x)))
        return x + self.drop(self.ff(self.n2(x)))


class Sorter(nn.Module):
    def __init__(self, vocab=10, length=8, d_model=64, heads=4, layers=3, p=0.0):
        super().__init__()
        self.tok = nn.Embedding(vocab, d_model)
        self.pos = nn.Embedding(length, d_model)
        self.layers = nn.ModuleList([EncoderLayer(d_model, heads, 4 * d_model, p) for _ in range(layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab)
        self.apply(self._init_weights)

    def _init_weights(self, module):
        # GPT-2 init
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, 0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, x):
        h = self.tok(x) + self.pos(torch.arange(x.size(1), device=x.device))
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h))


def get_batch(n, length=8):
    x = torch.randint(0, 10, (n, length))
    return x, x.sort(1).values


def evaluate(model, n=500):
    model.eval()
    with torch.no_grad():
        x, y = get_batch(n)
        pred = model(x).argmax(-1)
    model.train()
    return (pred == y).float().mean().item(), (pred == y).all(1).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = Sorter()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01)
    model.train()
    for step in range(1, 401):
        x, y = get_batch(64)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step == 1 or step % 100 == 0:
            tok, seq = evaluate(model)
            print(f"step {step:4d} loss {loss.item():.4f} token acc {tok:.3f} sequence acc {seq:.3f}")
