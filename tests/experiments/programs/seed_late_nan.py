"""Training goes well for some epochs, then the loss is NaN: the rate warms up beyond what it bears."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(640, 20)
x[:, 0] *= 4
y = x[:, 1:] @ torch.randn(19, 1) + 0.1 * torch.randn(640, 1)
train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Linear(20, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.05, total_iters=8)
for epoch in range(12):
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
    scheduler.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
