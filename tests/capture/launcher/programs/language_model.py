"""A small GPT written out, with its own batches and a learning rate that warms up from zero."""

import math

import torch
from torch import nn

torch.manual_seed(12)
text = "the quick brown fox jumps over the lazy dog and runs away from the big bad wolf. " * 60
letters = sorted(set(text))
data = torch.tensor([letters.index(c) for c in text])
train_data, val_data = data[:4000], data[4000:]
block_size, batch_size, width = 32, 16, 48


def get_batch(source):
    starts = torch.randint(len(source) - block_size - 1, (batch_size,))
    x = torch.stack([source[i : i + block_size] for i in starts])
    y = torch.stack([source[i + 1 : i + block_size + 1] for i in starts])
    return x, y


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("mask", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // 4)
        scores = scores.masked_fill(self.mask[:length, :length] == 0, float("-inf"))
        weights = self.dropout(scores.softmax(-1))
        return self.project((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(0.1)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(len(letters), width)
        self.positions = nn.Embedding(block_size, width)
        self.layers = nn.ModuleList([Layer(), Layer()])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, len(letters), bias=False)
        self.tokens.weight = self.head.weight

    def forward(self, x, targets=None):
        h = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        for layer in self.layers:
            h = layer(h)
        logits = self.head(self.norm(h))
        if targets is None:
            return logits, None
        loss = nn.functional.cross_entropy(logits.view(-1, len(letters)), targets.view(-1))
        return logits, loss


@torch.no_grad()
def estimate(model):
    model.eval()
    losses = [model(*get_batch(val_data))[1].item() for _ in range(5)]
    model.train()
    return sum(losses) / len(losses)


model = GPT()
for table in (model.head, model.positions):
    nn.init.normal_(table.weight, std=0.02)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
for step in range(150):
    for group in optimizer.param_groups:
        group["lr"] = 3e-3 * min(step / 20, 0.5 * (1 + math.cos(math.pi * step / 200)))
    logits, loss = model(*get_batch(train_data))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 25 == 0:
        print(f"step {step} loss {loss.item()!r} val {estimate(model)!r}")
