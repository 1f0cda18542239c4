"""Gradient accumulation in which the gradients are never cleared after the step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
x = torch.randn(900, 12)
y = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
accumulate = 4
for epoch in range(12):
    for i, (batch_x, batch_y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(batch_x), batch_y) / accumulate
        loss.backward()
        if (i + 1) % accumulate == 0:
            optimizer.step()
    print(f"epoch {epoch} loss {loss.item() * accumulate:.6f}")
