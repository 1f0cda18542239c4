"""Twelve sigmoid layers without skips: nothing reaches the first ones."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data / 16.0, dtype=torch.float32)
loader = DataLoader(TensorDataset(x, torch.tensor(digits.target)), batch_size=64, shuffle=True)
layers = [nn.Linear(64, 64), nn.Sigmoid()]
for _ in range(11):
    layers += [nn.Linear(64, 64), nn.Sigmoid()]
model = nn.Sequential(*layers, nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(10):
    for batch_x, batch_y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
