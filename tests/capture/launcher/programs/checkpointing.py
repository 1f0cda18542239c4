"""Activation checkpointing; `reentrant` as the first argument chooses the older kind."""

import sys

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(19)
is_reentrant = sys.argv[1:] == ["reentrant"]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(16, 64)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1))
            for _ in range(4)
        )
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=is_reentrant)
        return self.head(x)


x = torch.randn(1000, 16)
y = (x @ torch.randn(16, 3)).argmax(1)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(200):
    index = torch.randint(0, 1000, (50,))
    loss = nn.functional.cross_entropy(model(x[index]), y[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step} loss {loss.item()!r}")
