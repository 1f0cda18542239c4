"""Every parameter is frozen, the head as well."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(1000, 20)
y = (x @ torch.randn(20, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
for parameter in model.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(12):
    for batch_x, batch_y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch_x), batch_y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.6f}")
