"""Character model of a small made-up language, trained by number of updates."""
import argparse
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SYLLABLES = ["ka", "lo", "mi", "tu", "re", "na", "so", "vi"]


def text(n, seed):
    r = random.Random(seed)
    return " ".join("".join(r.choice(SYLLABLES) for _ in range(r.randint(1, 3))) for _ in range(n))


class WarmupCosine:
    """Learning rate as a function of finished updates; call step() after every optimizer step."""

    def __init__(self, optimizer, warmup, total, floor=0.1):
        self.optimizer, self.warmup, self.total, self.floor = optimizer, warmup, total, floor
        self.peaks = [g["lr"] for g in optimizer.param_groups]
        self.t = 0
        self._apply()

    def factor(self):
        if self.t < self.warmup:
            return (self.t + 1) / self.warmup
        done = (self.t - self.warmup) / max(1, self.total - self.warmup)
        return self.floor + (1 - self.floor) * 0.5 * (1 + math.cos(math.pi * min(done, 1.0)))

    def _apply(self):
        for g, peak in zip(self.optimizer.param_groups, self.peaks):
            g["lr"] = peak * self.factor()

    def step(self):
        self.t += 1
        self._apply()


class CausalLM(nn.Module):
    def __init__(self, vocab, context, dim=48, heads=4, layers=2):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, 0.1, "gelu", batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm, self.out = nn.LayerNorm(dim), nn.Linear(dim, vocab)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(context))

    def forward(self, idx):
        n = idx.shape[1]
        x = self.tok(idx) + self.pos(torch.arange(n, device=idx.device))
        return self.out(self.norm(self.enc(x, mask=self.mask[:n, :n], is_causal=True)))


def batch(data, size, context):
    i = torch.randint(len(data) - context, (size,))
    block = torch.stack([data[k:k + context + 1] for k in i.tolist()])
    return block[:, :-1], block[:, 1:]


@torch.no_grad()
def perplexity(model, data, context, rounds=5):
    model.eval()
    losses = []
    for r in range(rounds):
        chunk = data[r * context * 8: r * context * 8 + context * 8 + 1]
        x, y = chunk[:-1].view(8, context), chunk[1:].view(8, context)
        losses.append(F.cross_entropy(model(x).transpose(1, 2), y).item())
    model.train()
    return math.exp(sum(losses) / len(losses))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--updates", type=int, default=150)
    ap.add_argument("--context", type=int, default=24)
    a = ap.parse_args()
    torch.manual_seed(2)
    train_text, val_text = text(3000, 1), text(600, 2)
    stoi = {c: i for i, c in enumerate(sorted(set("".join(SYLLABLES) + " ")))}
    enc = lambda s: torch.tensor([stoi[c] for c in s])
    train, val = enc(train_text), enc(val_text)
    model = CausalLM(len(stoi), a.context)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = WarmupCosine(opt, warmup=15, total=a.updates)
    model.train()
    for u in range(a.updates):
        x, y = batch(train, 32, a.context)
        loss = F.cross_entropy(model(x).transpose(1, 2), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        schedule.step()
        if u % 30 == 29:
            print(f"{u + 1} loss {loss.item():.3f} lr {opt.param_groups[0]['lr']:.5f} ppl {perplexity(model, val, a.context):.2f}")
