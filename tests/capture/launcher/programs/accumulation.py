"""Gradient accumulation over four micro-batches, with the remainder stepped at the end."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
x = torch.randn(900, 12)
y = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
accumulate = 4
for epoch in range(12):
    optimizer.zero_grad()
    running = 0.0
    for i, (batch_x, batch_y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(batch_x), batch_y) / accumulate
        loss.backward()
        running += loss.item() * accumulate
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    print(f"epoch {epoch} loss {running / len(loader)!r}")
