"""
Trains a small character-level GPT. In the spirit of nanoGPT, trimmed down.
"""
import math
import time

import torch
import torch.nn as nn
from torch.nn import functional as F

# -----------------------------------------------------------------------------
block_size = 32
n_layer, n_head, n_embd = 2, 4, 64
batch_size = 8
gradient_accumulation_steps = 8  # simulate a batch of 64
learning_rate = 0.1
momentum = 0.9
max_iters = 120
warmup_iters = 10
eval_interval = 40
seed = 1337
# -----------------------------------------------------------------------------
torch.manual_seed(seed)
text = ("the quick brown fox jumps over the lazy dog. pack my box with five dozen liquor jugs. "
        "how vexingly quick daft zebras jump! sphinx of black quartz, judge my vow. ") * 60
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])
n = int(0.9 * len(data))
train_data, val_data = data[:n], data[n:]


def get_batch(split):
    d = train_data if split == "train" else val_data
    ix = torch.randint(len(d) - block_size - 1, (batch_size,))
    x = torch.stack([d[i:i + block_size] for i in ix])
    y = torch.stack([d[i + 1:i + 1 + block_size] for i in ix])
    return x, y


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).split(C, dim=2)
        q, k, v = (z.view(B, T, n_head, C // n_head).transpose(1, 2) for z in (q, k, v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(len(chars), n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, len(chars), bias=False)

    def forward(self, idx, targets):
        pos = torch.arange(idx.size(1))
        logits = self.head(self.ln_f(self.h(self.wte(idx) + self.wpe(pos))))
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


@torch.no_grad()
def estimate_loss(iters=10):
    model.eval()
    out = {s: sum(model(*get_batch(s))[1].item() for _ in range(iters)) / iters for s in ("train", "val")}
    model.train()
    return out


def get_lr(it):
    if it < warmup_iters:
        return learning_rate * (it + 1) / warmup_iters
    ratio = (it - warmup_iters) / (max_iters - warmup_iters)
    return 0.1 * learning_rate + 0.5 * (1 + math.cos(math.pi * ratio)) * 0.9 * learning_rate


model = GPT()
optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=momentum)
t0 = time.time()
for it in range(max_iters):
    for group in optimizer.param_groups:
        group["lr"] = get_lr(it)
    if it % eval_interval == 0:
        print(it, estimate_loss(), f"{time.time() - t0:.1f}s")
    lossf = 0.0
    for micro_step in range(gradient_accumulation_steps):
        _, loss = model(*get_batch("train"))
        lossf += loss.item() / gradient_accumulation_steps
        loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if it % 10 == 0:
        print(f"iter {it} loss {lossf:.4f}")
print("final", estimate_loss())
