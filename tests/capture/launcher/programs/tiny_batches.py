"""Batches of four, noisy data and clipping at every step: the loss jumps and still goes down."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(46)
x = torch.randn(1600, 10)
y = x @ torch.randn(10, 1) + 1.5 * torch.randn(1600, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, weight_decay=1e-4)
for epoch in range(2):
    total = 0.0
    for step, (batch_x, batch_y) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch_x), batch_y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
        if step % 100 == 99:
            print(f"epoch {epoch} step {step} loss {total / 100!r}")
            total = 0.0
