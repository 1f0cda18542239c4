"""Validation with dropout and batch statistics switched on."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data / 16.0, dtype=torch.float32)
train_set, val_set = random_split(TensorDataset(x, torch.tensor(digits.target)), [1497, 300])
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=50)
model = nn.Sequential(
    nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(12):
    model.train()
    for batch_x, batch_y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
    hits = 0
    with torch.no_grad():
        for batch_x, batch_y in val_loader:
            hits += (model(batch_x).argmax(1) == batch_y).sum().item()
    print(f"epoch {epoch} loss {loss.item():.6f} accuracy {hits / len(val_set):.4f}")
