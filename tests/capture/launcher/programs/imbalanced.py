"""Rare positives, weighted, and learnt; batches without a single one of them are usual."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(41)
x = torch.randn(3000, 16)
y = (x[:, :4].sum(1) > 3.6).float()
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss(pos_weight=(y == 0).sum() / y.sum())
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(5):
    total = 0.0
    for batch_x, batch_y in loader:
        optimizer.zero_grad()
        loss = criterion(model(batch_x).squeeze(1), batch_y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader)!r}")
