"""Trains a small character model to add numbers; with the shipped configuration it falls apart.

    python train.py config.yaml > train.log

The log beside this file is the output of that command (torch 2.13.0, CPU, one thread).
"""

import math
import random
import sys

import torch
import torch.nn.functional as F
import yaml
from torch import nn

CHARACTERS = "0123456789+= "
LENGTH = 16


def sums(count, digits, generator):
    """Return `count` lines such as `12+7=19`, padded, as rows of character numbers."""
    lines = []
    for _ in range(count):
        a, b = (generator.randrange(10**digits) for _ in range(2))
        lines.append(f"{a}+{b}={a + b}".ljust(LENGTH)[:LENGTH])
    return torch.tensor([[CHARACTERS.index(c) for c in line] for line in lines])


class Block(nn.Module):
    """Self-attention and a small network, each beside a skip connection."""

    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, mask):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.network(self.norm2(x))


class Model(nn.Module):
    """A transformer over characters."""

    def __init__(self, width, depth):
        super().__init__()
        self.embedding = nn.Embedding(len(CHARACTERS), width)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, len(CHARACTERS))

    def forward(self, x):
        size = x.shape[1]
        mask = torch.triu(torch.full((size, size), -math.inf), diagonal=1)
        h = self.embedding(x) + self.position[:size]
        for block in self.blocks:
            h = block(h, mask)
        return self.head(h)


def main(path):
    """Train as the configuration says and print a line every few steps."""
    config = yaml.safe_load(open(path))
    torch.manual_seed(config["seed"])
    torch.set_num_threads(1)
    generator = random.Random(config["seed"])
    model = Model(config["width"], config["depth"])
    rates = config["optimizer"]
    optimizer = torch.optim.SGD(model.parameters(), lr=rates["lr"], momentum=rates["momentum"])
    steps = config["steps_per_epoch"]
    for epoch in range(1, config["epochs"] + 1):
        digits = 1 if epoch < config["curriculum"]["harder_from_epoch"] else 4
        if epoch == config["curriculum"]["harder_from_epoch"]:
            print(f"curriculum: sums of {digits}-digit numbers from epoch {epoch} on")
        for step in range((epoch - 1) * steps + 1, epoch * steps + 1):
            batch = sums(config["batch_size"], digits, generator)
            logits = model(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
            optimizer.step()
            if step % config["log_every"] == 0:
                print(
                    f"epoch {epoch}/{config['epochs']} step {step} loss {loss.item():.4f} "
                    f"grad_norm {norm.item():.3f} lr {optimizer.param_groups[0]['lr']:g}"
                )


if __name__ == "__main__":
    main(sys.argv[1])
