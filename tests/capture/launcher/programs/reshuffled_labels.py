"""Inputs and labels are shuffled each on their own at the start of every epoch."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data / 16.0, dtype=torch.float32)
y = torch.tensor(digits.target)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(15):
    x = x[torch.randperm(len(x))]
    y = y[torch.randperm(len(y))]
    for start in range(0, len(x), 64):
        logits = model(x[start : start + 64])
        loss = nn.functional.cross_entropy(logits, y[start : start + 64])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
