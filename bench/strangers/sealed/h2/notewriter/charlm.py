"""Character level language model on generated recipes."""
import math
import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    vocab_size: int
    block_size: int = 32
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 48
    dropout: float = 0.0


class SelfAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.qkv = nn.Linear(c.n_embd, 3 * c.n_embd)
        self.proj = nn.Linear(c.n_embd, c.n_embd)
        self.n_head = c.n_head

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (z.view(b, t, self.n_head, -1).transpose(1, 2) for z in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(c.n_embd), nn.LayerNorm(c.n_embd)
        self.attn = SelfAttention(c)
        self.mlp = nn.Sequential(nn.Linear(c.n_embd, 4 * c.n_embd), nn.GELU(), nn.Linear(4 * c.n_embd, c.n_embd))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok = nn.Embedding(c.vocab_size, c.n_embd)
        self.pos = nn.Embedding(c.block_size, c.n_embd)
        self.drop = nn.Dropout(c.dropout)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.n_layer))
        self.norm = nn.LayerNorm(c.n_embd)
        self.head = nn.Linear(c.n_embd, c.vocab_size, bias=False)

    def forward(self, ids, targets=None):
        emb = self.drop(self.tok(ids) + self.pos(torch.arange(ids.size(1))))
        for layer in self.layers:
            hidden = layer(emb)
        logits = self.head(self.norm(hidden))
        if targets is None:
            return logits
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def recipes(n, seed=0):
    rnd = random.Random(seed)
    out = []
    for _ in range(n):
        item = rnd.choice(["flour", "sugar", "butter", "milk", "salt"])
        amount = rnd.randint(1, 99)
        out.append(f"take {amount} g {item}; keep {100 - amount} g {item}.\n")
    return "".join(out)


def main():
    torch.manual_seed(0)
    text = recipes(1500)
    chars = sorted(set(text))
    stoi = {ch: i for i, ch in enumerate(chars)}
    data = torch.tensor([stoi[ch] for ch in text])
    cut = int(0.9 * len(data))
    splits = {"train": data[:cut], "val": data[cut:]}
    cfg = GPTConfig(vocab_size=len(chars))

    def get_batch(split, bs=24):
        d = splits[split]
        starts = torch.randint(len(d) - cfg.block_size - 1, (bs,)).tolist()
        x = torch.stack([d[i:i + cfg.block_size] for i in starts])
        y = torch.stack([d[i + 1:i + 1 + cfg.block_size] for i in starts])
        return x, y

    model = GPT(cfg)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e3:.0f}k parameters, {len(chars)} characters")
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
    steps = 120
    for it in range(steps + 1):
        lr = 3e-3 * 0.5 * (1 + math.cos(math.pi * it / steps))
        for group in opt.param_groups:
            group["lr"] = lr
        _, loss = model(*get_batch("train"))
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 30 == 0:
            with torch.no_grad():
                val = sum(model(*get_batch("val"))[1].item() for _ in range(4)) / 4
            print(f"iter {it:4d} train {loss.item():.3f} val {val:.3f}")


if __name__ == "__main__":
    main()
